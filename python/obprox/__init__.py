"""Models that are mostly exact zeros: min f(x) + λ‖x‖₁.

Importing this package needs numpy and nothing else; scikit-learn, scipy, pandas, matplotlib and torch are used where
they are there.
"""

from ._core import __version__

__all__ = ["__version__"]
