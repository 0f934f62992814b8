"""Data that every test may use, and what must be there for some."""

import importlib.util
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

# Tests of obprox.torch run where PyTorch is there; OBPROX_REQUIRE_TORCH=1 makes its absence a failure.
if importlib.util.find_spec("torch") is None and os.environ.get("OBPROX_REQUIRE_TORCH") != "1":
    collect_ignore = ["torch_side"]


class Problems:
    """One set of rows with targets of every kind."""

    def __init__(self, n_rows=160, n_cols=24):
        rng = np.random.default_rng(3)
        self.X = np.where(rng.random((n_rows, n_cols)) < 0.4, 0.0, rng.normal(size=(n_rows, n_cols)))
        score = self.X[:, :5] @ [2.0, -1.0, 1.5, 0.7, -0.6] + 0.4
        # At most 1: the steps of scikit-learn's saga are too long for larger ones.
        self.weights = rng.uniform(0.1, 1.0, size=n_rows)
        self.binary = (score + rng.logistic(size=n_rows) > 0).astype(int)
        self.classes = np.digitize(score + rng.normal(size=n_rows), [-1.0, 1.0])
        self.real = score + rng.normal(size=n_rows)
        self.counts = rng.poisson(np.exp(0.3 * score)).astype(float)


@pytest.fixture(scope="session")
def problems():
    return Problems()


@pytest.fixture(scope="session")
def command():
    """The command `obprox`, where cargo has built it."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[2] / "target"))
    found = [path for profile in ("debug", "release") if (path := target / profile / "obprox").exists()]
    if not found and not shutil.which("obprox"):
        pytest.skip("the command is not built: cargo build -p obprox-cli")
    return str(max(found, key=os.path.getmtime)) if found else "obprox"
