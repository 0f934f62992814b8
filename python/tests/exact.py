"""The estimators, solved as far as others are compared to: ``exact.Lasso(alpha)`` is ``obprox.Lasso(alpha, tol=1e-11)``."""

from functools import partial

import obprox


def __getattr__(name):
    return partial(getattr(obprox, name), tol=1e-11)
