"""Tests of obprox.torch run where PyTorch is there; OBPROX_REQUIRE_TORCH=1 makes its absence a failure."""

import importlib.util
import os

if importlib.util.find_spec("torch") is None and os.environ.get("OBPROX_REQUIRE_TORCH") != "1":
    collect_ignore = ["torch_side"]
