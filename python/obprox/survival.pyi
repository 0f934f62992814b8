# Written by python/stubs from the signatures; do not edit.
import os
from collections.abc import Callable, Sequence
from typing import Any, Optional, Union

import numpy as np

from ._tasks import Regressor
from .cross_validation import CrossValidated
from .solvers import Method

class _Survival(Regressor):
    def predict_partial_hazard(self, X: Any, offset: Any = None) -> np.ndarray: ...
    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float: ...

class CoxPH(_Survival):
    alpha: Any
    l1_ratio: Any
    ties: Any
    penalty_weights: Any
    positive: Any
    bounds: Any
    groups: Any
    group_weights: Any
    group_l1: Any
    max_features: Any
    solver: Any
    tol: Any
    max_iter: Any
    warm_start: Any
    n_jobs: Any
    verbose: Any
    callback: Any
    checkpoint: Any
    resume: Any
    def __init__(
        self,
        alpha: float = 0.01,
        *,
        l1_ratio: float = 1.0,
        ties: str = 'efron',
        penalty_weights: Any = None,
        positive: bool = False,
        bounds: Any = None,
        groups: Any = None,
        group_weights: Union[dict[Any, float], str, None] = None,
        group_l1: float = 0.0,
        max_features: Optional[int] = None,
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

class CoxPHCV(CrossValidated, _Survival):
    l1_ratio: Any
    eps: Any
    alphas: Any
    ties: Any
    cv: Any
    scoring: Any
    rule: Any
    relax: Any
    penalty_weights: Any
    positive: Any
    bounds: Any
    groups: Any
    group_weights: Any
    group_l1: Any
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
    l1_ratio_: float
    alphas_: np.ndarray
    loss_path_: np.ndarray
    gamma_: float
    def __init__(
        self,
        *,
        l1_ratio: Union[float, Sequence[float]] = 1.0,
        eps: Optional[float] = None,
        alphas: Union[int, Sequence[float]] = 100,
        ties: str = 'efron',
        cv: Any = None,
        scoring: Any = 'loss',
        rule: str = 'best',
        relax: bool = False,
        penalty_weights: Any = None,
        positive: bool = False,
        bounds: Any = None,
        groups: Any = None,
        group_weights: Union[dict[Any, float], str, None] = None,
        group_l1: float = 0.0,
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

class CoxPHCV(CrossValidated, _Survival):
    l1_ratio: Any
    eps: Any
    alphas: Any
    ties: Any
    cv: Any
    scoring: Any
    rule: Any
    relax: Any
    penalty_weights: Any
    positive: Any
    bounds: Any
    groups: Any
    group_weights: Any
    group_l1: Any
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
    l1_ratio_: float
    alphas_: np.ndarray
    loss_path_: np.ndarray
    gamma_: float
    def __init__(
        self,
        *,
        l1_ratio: Union[float, Sequence[float]] = 1.0,
        eps: Optional[float] = None,
        alphas: Union[int, Sequence[float]] = 100,
        ties: str = 'efron',
        cv: Any = None,
        scoring: Any = 'loss',
        rule: str = 'best',
        relax: bool = False,
        penalty_weights: Any = None,
        positive: bool = False,
        bounds: Any = None,
        groups: Any = None,
        group_weights: Union[dict[Any, float], str, None] = None,
        group_l1: float = 0.0,
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
