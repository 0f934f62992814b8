"""Train PyTorch networks that are mostly exact zeros: min f(x) + λ‖x‖₁ over the weights x.

The optimizers of the OBProx-SG paper drop into an existing training loop:

>>> import torch
>>> from obprox.torch import OBProxSG, sparsity_report
>>> model = torch.nn.Linear(20, 3)
>>> optimizer = OBProxSG(model.parameters(), lr=0.1, lambda_=1e-2, n_p=5, n_o=None, steps_per_epoch=4)
>>> inputs, targets = torch.randn(32, 20), torch.randint(3, (32,))
>>> for step in range(60):
...     optimizer.zero_grad()
...     torch.nn.functional.cross_entropy(model(inputs), targets).backward()
...     optimizer.step()
>>> sparsity_report(model).weights.density < 1
True
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"obprox.torch needs PyTorch ({error}): install it with `pip install torch` or `apt-get install python3-torch`"
    ) from error

from .before_after import BeforeAfter, before_after
from .compress import load_compressed, save_compressed
from .half_space import HalfSpace, channel_groups
from .obprox_sg import OBProxSG
from .prox_sg import ProxSG
from .prox_svrg import ProxSVRG
from .rda import RDA
from .report import SparsityReport, sparsity_report
from .shrink import shrink

__all__ = [
    "BeforeAfter",
    "HalfSpace",
    "OBProxSG",
    "ProxSG",
    "ProxSVRG",
    "RDA",
    "SparsityReport",
    "before_after",
    "channel_groups",
    "load_compressed",
    "save_compressed",
    "shrink",
    "sparsity_report",
]
