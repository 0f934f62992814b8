# Written by python/stubs from the signatures; do not edit.
import os
from collections.abc import Callable, Sequence
from typing import Any, Optional, Union

import numpy as np

from ._tasks import Classifier, MultiTask, Regressor
from .solvers import Method

class LogisticRegression(Classifier):
    penalty: Any
    C: Any
    l1_ratio: Any
    fit_intercept: Any
    class_weight: Any
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
        penalty: Optional[str] = 'auto',
        *,
        C: float = 1.0,
        l1_ratio: float = 1.0,
        fit_intercept: bool = True,
        class_weight: Union[dict[Any, float], str, None] = None,
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
    def predict_proba(self, X: Any, offset: Any = None) -> np.ndarray: ...
    def predict_log_proba(self, X: Any, offset: Any = None) -> np.ndarray: ...

class ElasticNet(Regressor):
    alpha: Any
    l1_ratio: Any
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
    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
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
    @property
    def dual_gap_(self) -> float: ...

class Lasso(ElasticNet):
    alpha: Any
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
    def __init__(
        self,
        alpha: float = 1.0,
        *,
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

class MultiTaskElasticNet(MultiTask):
    alpha: Any
    l1_ratio: Any
    fit_intercept: Any
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
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
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

class MultiTaskLasso(MultiTask):
    alpha: Any
    fit_intercept: Any
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
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
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

class SparseClassifier(Classifier):
    loss: Any
    alpha: Any
    l1_ratio: Any
    fit_intercept: Any
    class_weight: Any
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
        loss: str = 'logistic',
        *,
        alpha: float = 0.01,
        l1_ratio: float = 1.0,
        fit_intercept: bool = True,
        class_weight: Union[dict[Any, float], str, None] = None,
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
    def predict_proba(self, X: Any, offset: Any = None) -> np.ndarray: ...
    def predict_log_proba(self, X: Any, offset: Any = None) -> np.ndarray: ...

class SparseRegressor(Regressor):
    loss: Any
    alpha: Any
    l1_ratio: Any
    delta: Any
    power: Any
    theta: Any
    fit_intercept: Any
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
        loss: str = 'squared',
        *,
        alpha: float = 0.01,
        l1_ratio: float = 1.0,
        delta: float = 1.345,
        power: float = 1.5,
        theta: float = 1.0,
        fit_intercept: bool = True,
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
