# Written by python/stubs from the signatures; do not edit.
import os
from collections.abc import Callable, Sequence
from typing import Any, Optional, Union

import numpy as np

from ._linear import Linear
from .linear_model import ElasticNet, LogisticRegression, SparseClassifier, SparseRegressor
from .solvers import Method

class CrossValidated(Linear): ...

class LogisticRegressionCV(CrossValidated, LogisticRegression):
    Cs: Any
    l1_ratios: Any
    fit_intercept: Any
    cv: Any
    scoring: Any
    rule: Any
    relax: Any
    class_weight: Any
    penalty: Any
    solver: Any
    tol: Any
    max_iter: Any
    warm_start: Any
    n_jobs: Any
    verbose: Any
    callback: Any
    checkpoint: Any
    resume: Any
    C_: np.ndarray
    Cs_: np.ndarray
    l1_ratio_: Any
    l1_ratios_: np.ndarray
    scores_: np.ndarray
    gamma_: float
    def __init__(
        self,
        *,
        Cs: Union[int, Sequence[float]] = 10,
        l1_ratios: Sequence[float] = (1.0,),
        fit_intercept: bool = True,
        cv: Any = None,
        scoring: Any = None,
        rule: str = 'best',
        relax: bool = False,
        class_weight: Union[dict[Any, float], str, None] = None,
        penalty: Optional[str] = 'auto',
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

class ElasticNetCV(CrossValidated, ElasticNet):
    l1_ratio: Any
    eps: Any
    alphas: Any
    fit_intercept: Any
    positive: Any
    cv: Any
    rule: Any
    relax: Any
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
    mse_path_: np.ndarray
    gamma_: float
    def __init__(
        self,
        *,
        l1_ratio: Union[float, Sequence[float]] = 0.5,
        eps: Optional[float] = 0.001,
        alphas: Union[int, Sequence[float]] = 100,
        fit_intercept: bool = True,
        positive: bool = False,
        cv: Any = None,
        rule: str = 'best',
        relax: bool = False,
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

class LassoCV(ElasticNetCV):
    eps: Any
    alphas: Any
    fit_intercept: Any
    positive: Any
    cv: Any
    rule: Any
    relax: Any
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
        *,
        eps: Optional[float] = 0.001,
        alphas: Union[int, Sequence[float]] = 100,
        fit_intercept: bool = True,
        positive: bool = False,
        cv: Any = None,
        rule: str = 'best',
        relax: bool = False,
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

class SparseClassifierCV(CrossValidated, SparseClassifier):
    loss: Any
    l1_ratio: Any
    eps: Any
    alphas: Any
    fit_intercept: Any
    cv: Any
    scoring: Any
    rule: Any
    relax: Any
    class_weight: Any
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
        loss: str = 'logistic',
        *,
        l1_ratio: Union[float, Sequence[float]] = 1.0,
        eps: Optional[float] = None,
        alphas: Union[int, Sequence[float]] = 100,
        fit_intercept: bool = True,
        cv: Any = None,
        scoring: Any = 'loss',
        rule: str = 'best',
        relax: bool = False,
        class_weight: Union[dict[Any, float], str, None] = None,
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

class SparseRegressorCV(CrossValidated, SparseRegressor):
    loss: Any
    l1_ratio: Any
    delta: Any
    power: Any
    theta: Any
    eps: Any
    alphas: Any
    fit_intercept: Any
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
        loss: str = 'squared',
        *,
        l1_ratio: Union[float, Sequence[float]] = 1.0,
        delta: float = 1.345,
        power: float = 1.5,
        theta: float = 1.0,
        eps: Optional[float] = None,
        alphas: Union[int, Sequence[float]] = 100,
        fit_intercept: bool = True,
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
