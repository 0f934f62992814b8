# Written by python/stubs from the signatures; do not edit.
import os
from collections.abc import Callable, Sequence
from typing import Any, Optional, Union

import numpy as np

from .linear_model import Lasso
from .solvers import Method

class LassoIC(Lasso):
    criterion: Any
    eps: Any
    alphas: Any
    noise_variance: Any
    fit_intercept: Any
    positive: Any
    solver: Any
    tol: Any
    max_iter: Any
    warm_start: Any
    n_jobs: Any
    verbose: Any
    callback: Any
    checkpoint: Any
    resume: Any
    alpha_: float
    alphas_: np.ndarray
    criterion_: np.ndarray
    noise_variance_: float
    def __init__(
        self,
        criterion: str = 'aic',
        *,
        eps: Optional[float] = None,
        alphas: Union[int, Sequence[float]] = 100,
        noise_variance: Optional[float] = None,
        fit_intercept: bool = True,
        positive: bool = False,
        solver: Union[str, Method] = 'auto',
        tol: float = 1e-06,
        max_iter: Optional[int] = None,
        warm_start: bool = False,
        n_jobs: Optional[int] = None,
        verbose: int = 0,
        callback: Optional[Callable[[dict[str, Any]], Any]] = None,
        checkpoint: Union[str, os.PathLike[str], None] = None,
        resume: bool = False,
    ) -> None: ...
