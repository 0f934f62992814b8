"""The compiled part of obprox; written in Rust, in `crates/obprox-py`."""

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any, Optional, Union, final

import numpy as np
from numpy.typing import NDArray

__version__: str

_Floats = NDArray[np.float64]
_Figures = dict[str, Any]
_OnEpoch = Optional[Callable[[_Figures], Any]]
_Path = Union[str, PathLike[str]]
_Checkpoint = Optional[tuple[_Path, bool]]

def columns(stream_of: Any, threads: int = 0) -> tuple[NDArray[Any], list[str]]: ...
@final
class Matrix:
    @staticmethod
    def csr(
        n_cols: int, indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any], threads: int = 0
    ) -> Matrix: ...
    @staticmethod
    def dense(array: NDArray[Any], threads: int = 0) -> Matrix: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def storage(self) -> str: ...

@final
class Cluster:
    def __new__(
        cls,
        map: Callable[[bytes], Iterable[bytes]],
        *,
        reduce: Optional[Callable[[bytes, int, int], Iterable[bytes]]] = None,
        piece: Optional[int] = None,
        n_cols: int = 0,
        room: int = 1073741824,
    ) -> Cluster: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def nnz(self) -> int: ...
    @property
    def n_shards(self) -> int: ...
    @property
    def passes(self) -> int: ...
    @property
    def has_offsets(self) -> bool: ...
    @property
    def names(self) -> Optional[list[str]]: ...
    @property
    def notice(self) -> Optional[str]: ...
    def labels(self) -> list[float]: ...

def work_rows(
    number: int,
    request: bytes,
    matrix: Optional[Matrix] = None,
    targets: Optional[_Floats] = None,
    weights: Optional[_Floats] = None,
    offsets: Optional[_Floats] = None,
    *,
    name: str = "",
    names: Optional[Sequence[str]] = None,
    threads: int = 1,
) -> bytes: ...
def work_file(
    number: int,
    request: bytes,
    path: _Path,
    *,
    label: Optional[str] = None,
    weights: Optional[_Path] = None,
    offsets: Optional[_Path] = None,
    header: Optional[bool] = None,
    format: Optional[str] = None,
    threads: int = 1,
) -> bytes: ...
def is_kept(number: int, request: bytes) -> bool: ...
def cut_reply(reply: bytes, count: int, width: int) -> list[bytes]: ...
def add_replies(replies: Sequence[bytes]) -> bytes: ...
@final
class Shards:
    def __new__(
        cls,
        sources: Sequence[_Path],
        cache: _Path,
        memory: int,
        *,
        n_cols: Optional[int] = None,
        label: Optional[str] = None,
        threads: int = 0,
    ) -> Shards: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    def targets(self, threads: int) -> _Floats: ...
    @property
    def names(self) -> Optional[list[str]]: ...

@final
class Problem:
    def __new__(
        cls,
        matrix: Union[Matrix, Shards],
        targets: _Floats,
        loss: str,
        *,
        parameter: Optional[float] = None,
        row_weights: Optional[_Floats] = None,
        class_weights: Optional[Sequence[tuple[float, float]]] = None,
        balanced: bool = False,
        offset: Optional[_Floats] = None,
        feature_weights: Optional[_Floats] = None,
        bounds: Optional[tuple[_Floats, _Floats]] = None,
        groups: Optional[NDArray[np.uint32]] = None,
        group_weights: Optional[_Floats] = None,
        group_l1: float = 0.0,
        many: Optional[_Floats] = None,
        fit_intercept: bool = True,
        threads: int = 0,
    ) -> Problem: ...
    @staticmethod
    def remote(
        cluster: Cluster,
        loss: str,
        *,
        parameter: Optional[float] = None,
        class_weights: Optional[Sequence[tuple[float, float]]] = None,
        balanced: bool = False,
        feature_weights: Optional[_Floats] = None,
        bounds: Optional[tuple[_Floats, _Floats]] = None,
        groups: Optional[NDArray[np.uint32]] = None,
        group_weights: Optional[_Floats] = None,
        group_l1: float = 0.0,
        fit_intercept: bool = True,
        threads: int = 0,
    ) -> Problem: ...
    def with_lambda(self, lambda_: str, l2: float) -> Problem: ...
    @property
    def lambda_(self) -> float: ...
    def with_alpha(self, alpha: float, l1_ratio: float) -> Problem: ...
    def alpha_of(self, c: float) -> float: ...
    def alphas(self, l1_ratio: float, count: int, eps: Optional[float]) -> list[float]: ...
    @property
    def outputs(self) -> int: ...
    @property
    def lambda_max(self) -> float: ...

@final
class Settings:
    def __new__(
        cls,
        solver: str = "auto",
        *,
        max_iter: Optional[int] = None,
        tol: float = 1e-6,
        batch: Union[int, str, None] = None,
        step: Union[float, str, None] = None,
        schedule: str = "decay",
        decay: Optional[float] = None,
        n_p: Optional[int] = None,
        n_o: Optional[float] = None,
        switch: Optional[str] = None,
        gamma: Optional[float] = None,
        average: bool = False,
        seed: int = 0,
    ) -> Settings: ...
    @property
    def max_iter(self) -> int: ...
    @property
    def tol(self) -> float: ...

@final
class Fit:
    @property
    def coef(self) -> _Floats: ...
    @property
    def intercept(self) -> _Floats: ...
    @property
    def n_iter(self) -> int: ...
    @property
    def certificate(self) -> _Figures: ...
    @property
    def trace(self) -> list[_Figures]: ...

@final
class Steps:
    def __len__(self) -> int: ...
    def coefs(self) -> _Floats: ...
    def coef(self, at: int) -> _Floats: ...
    def intercepts(self) -> _Floats: ...
    def table(self) -> list[_Figures]: ...
    @property
    def stopped(self) -> bool: ...

@final
class Scores:
    @property
    def loss(self) -> _Floats: ...
    @property
    def score(self) -> _Floats: ...
    @property
    def nnz(self) -> _Floats: ...
    @property
    def unconverged(self) -> int: ...
    def model(self, fold: int, at: int) -> Optional[tuple[_Floats, _Floats]]: ...

@final
class Model:
    def __new__(
        cls,
        loss: str,
        coef: _Floats,
        intercept: _Floats,
        *,
        parameter: Optional[float] = None,
        labels: Sequence[float] = ...,
        label_names: Sequence[str] = ...,
        feature_names: Optional[Sequence[str]] = None,
        l1: float = 0.0,
        l2: float = 0.0,
        penalty: Optional[str] = None,
        offset: bool = False,
        certificate: Any = None,
    ) -> Model: ...
    @staticmethod
    def load(path: _Path) -> Model: ...
    def save(self, path: _Path) -> None: ...
    @property
    def offset(self) -> bool: ...
    @property
    def loss(self) -> str: ...
    @property
    def parameter(self) -> Optional[float]: ...
    @property
    def is_classifier(self) -> bool: ...
    @property
    def n_features(self) -> int: ...
    @property
    def coef(self) -> _Floats: ...
    @property
    def nonzeros(self) -> list[tuple[Any, _Floats]]: ...
    @property
    def intercept(self) -> _Floats: ...
    @property
    def labels(self) -> list[float]: ...
    @property
    def label_names(self) -> list[str]: ...
    @property
    def penalties(self) -> tuple[float, float]: ...
    @property
    def certificate(self) -> Optional[_Figures]: ...

def fit(
    problem: Problem,
    settings: Settings,
    *,
    start: Optional[tuple[_Floats, _Floats]] = None,
    on_epoch: _OnEpoch = None,
    checkpoint: _Checkpoint = None,
    threads: int = 0,
) -> Fit: ...
def fit_at_most(
    problem: Problem,
    settings: Settings,
    most: int,
    *,
    on_epoch: _OnEpoch = None,
    checkpoint: _Checkpoint = None,
    threads: int = 0,
) -> Fit: ...
def path(
    problem: Problem,
    settings: Settings,
    alphas: Sequence[float],
    l1_ratio: float,
    *,
    on_epoch: _OnEpoch = None,
    checkpoint: _Checkpoint = None,
    threads: int = 0,
) -> Steps: ...
def cross_validate(
    problem: Problem,
    settings: Settings,
    alphas: Sequence[float],
    l1_ratio: float,
    folds: Union[int, Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]],
    *,
    score_weights: Optional[_Floats] = None,
    over_total: bool = False,
    keep_models: bool = False,
    seed: int = 0,
    on_progress: Optional[Callable[[int, int], Any]] = None,
    checkpoint: _Checkpoint = None,
    threads: int = 0,
) -> Scores: ...
def choose(table: _Floats) -> tuple[int, int]: ...
def probabilities(margins: _Floats, threads: int = 0) -> _Floats: ...
def read_file(
    path: _Path, *, n_cols: Optional[int] = None, label: Optional[str] = None, threads: int = 0
) -> dict[str, Any]: ...
def write_cache_file(
    source: _Path, path: _Path, *, n_cols: Optional[int] = None, threads: int = 0
) -> None: ...
def soft_threshold(x: _Floats, t: float) -> _Floats: ...
def on_face(trial: _Floats, x: _Floats) -> _Floats: ...
def prox_step(x: _Floats, gradient: _Floats, step: float, l1: float, l2: float = 0.0) -> _Floats: ...
def orthant_step(x: _Floats, gradient: _Floats, step: float, l1: float, l2: float = 0.0) -> _Floats: ...
def dual_average(gradient: _Floats, beta: float, l1: float, l2: float = 0.0) -> _Floats: ...
def rda_weight(gradient_sum: _Floats, t: int, gamma: float, l1: float, l2: float = 0.0) -> _Floats: ...
def drift(x: _Floats, gradient: _Floats, step: float, l1: float, k: int, l2: float = 0.0) -> _Floats: ...
def rest(x: _Floats, elapsed: float, l1: float, l2: float = 0.0) -> _Floats: ...

_Tensors = dict[str, NDArray[np.float32]]
_Preparation = tuple[int, int, Sequence[float], Sequence[float]]

@final
class Network:
    def __new__(
        cls, tensors: _Tensors, preprocessing: Optional[_Preparation] = None, labels: Sequence[str] = ...
    ) -> Network: ...
    @staticmethod
    def of_graph(
        graph: str, tensors: _Tensors, preprocessing: Optional[_Preparation] = None, labels: Sequence[str] = ...
    ) -> Network: ...
    def graph(self) -> str: ...
    @staticmethod
    def read(path: _Path) -> Network: ...
    def write(self, path: _Path) -> int: ...
    def without_dead_channels(self) -> Network: ...
    def cut(self) -> Network: ...
    def channel_groups(self) -> list[list[tuple[str, int]]]: ...
    def write_onnx(self, path: _Path) -> int: ...
    @staticmethod
    def read_onnx(path: _Path, size: Optional[tuple[int, int]] = None) -> Network: ...
    def scores(self, images: NDArray[np.float32], threads: int) -> NDArray[np.float32]: ...
    def prepared(self, images: NDArray[np.uint8], threads: int) -> NDArray[np.float32]: ...
    def tensors(self) -> _Tensors: ...
    def parameter_name(self, name: str) -> Optional[str]: ...
    @property
    def architecture(self) -> Optional[tuple[str, int, float, int, int]]: ...
    @property
    def input_shape(self) -> list[int]: ...
    @property
    def output_shape(self) -> list[int]: ...
    @property
    def preprocessing(self) -> Optional[tuple[int, int, list[float], list[float]]]: ...
    @property
    def labels(self) -> list[str]: ...

def plain_name(name: str) -> Optional[str]: ...
def write_tensors(path: _Path, tensors: _Tensors) -> int: ...
def read_tensors(path: _Path) -> _Tensors: ...
