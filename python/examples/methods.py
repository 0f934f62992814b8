"""The methods: auto beside the paper's five on one problem. See docs/methods.md."""

# %% A problem whose rows have about unit norm, as text has.
import warnings

import numpy as np
import obprox
from obprox.solvers import OBProxSGPlus

warnings.simplefilter("ignore", obprox.ConvergenceWarning)
rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 200)) / np.sqrt(200)
y = (X[:, :8].sum(axis=1) + 0.1 * rng.normal(size=2000) > 0).astype(int)

# %% The paper's table on it: 30 epochs each, and the optimum.
runs = {}
print(f"{'solver':14} {'F':>9} {'gap':>9} {'nonzero':>8} {'seconds':>8}")
for solver in ("prox-sg", "rda", "prox-svrg", "obproxsg", "obproxsg-plus", "auto"):
    runs[solver] = obprox.SparseClassifier(alpha=0.002, solver=solver).fit(X, y)
    c = runs[solver].certificate_
    print(f"{solver:14} {c.F:9.5f} {c.relative_gap:9.1e} {c.nnz:8d} {c.seconds:8.4f}")

# %% A step size that fits the data.
for step in (1.0, "auto"):
    model = obprox.SparseClassifier(alpha=0.002, solver=OBProxSGPlus(step=step)).fit(X, y)
    c = model.certificate_
    print(f"step={step!r:7} F {c.F:.5f}, {c.nnz} nonzero")

# %% Stop when it is sparse enough.
runs["stopped"] = obprox.SparseClassifier(
    alpha=0.002,
    solver="obproxsg",
    max_iter=200,
    callback=lambda figures: figures["phase"] == "orthant" and figures["nnz"] < 30,
).fit(X, y)
print("stopped after", runs["stopped"].n_iter_, "epochs with", runs["stopped"].certificate_.nnz, "weights")

# %% How the runs went.
import matplotlib.pyplot as plt

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2))
obprox.plot_trace(runs["auto"], ax=left)
obprox.plot_density(runs["obproxsg"], ax=right)
figure.tight_layout()
figure.savefig("methods.png", dpi=120)
