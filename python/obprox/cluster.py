"""Rows on several machines: the driver, whichever engine reaches them.

The solver runs here. Whoever has a shard runs :func:`answer`, a pure function of the shard and a request, so a shard whose
machine is lost is asked again elsewhere, to the same bits. An engine is one method (:class:`Shards`); :mod:`obprox.dask`
and :mod:`obprox.spark` have one each. As a command::

    python -m obprox.cluster fit 'part-*.obx' --scheduler tcp://host:8786 --out model.json
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Optional, Protocol

import numpy as np

from . import _core
from ._inputs import rows, vector
from ._parameters import penalty, threads, weights_of_classes
from .exceptions import ClusterError, DataError, ParameterError
from .solvers import name as solver_name

__all__ = ["Distributed", "Driver", "File", "InProcess", "Rows", "Shards", "added", "answer", "pieces"]

#: Numbers of a reply that are added up in one place before they come to the driver.
PIECE = 1 << 17

#: What a process keeps of what it made of its shards, unless it is told otherwise.
MEMORY = 1 << 30


@dataclass(frozen=True)
class Rows:
    """A shard in memory: rows of numpy or of scipy, targets as numbers, weights and offsets or None."""

    X: Any
    y: Any
    weights: Any = None
    name: str = "a shard"
    columns: Optional[list[str]] = None
    offsets: Any = None


@dataclass(frozen=True)
class File:
    """A shard that is a file, with files of its weights and offsets or None, opened where it is worked on."""

    path: str
    label: Optional[str] = None
    weights: Optional[str] = None
    offsets: Optional[str] = None
    header: Optional[bool] = None
    format: Optional[str] = None


class Shards(Protocol):
    """What an engine has to do."""

    def map(self, request: bytes) -> Iterable[bytes]:
        """Has :func:`answer` called for every shard, with its number, and gives the replies in their order."""
        ...

    # An engine that can add replies up on their way has two more, and is then sent what is wide by them: ``piece``, the
    # least numbers of a piece, and ``reduce(request, count, width)``. That has :func:`pieces` called for every shard and
    # :func:`added` for the pieces of each number, and gives the sums in the order of the pieces.


def answer(number: int, request: bytes, shard: Any) -> bytes:
    """Does what a request asks of a shard. This is all that runs where the rows are.

    Parameters
    ----------
    number : int
        The shard's own, from 0.
    request : bytes
        What the driver sends to all of them.
    shard : Rows or File
        The rows.

    Returns
    -------
    reply : bytes
        Sums, for the driver.
    """
    if isinstance(shard, File):
        beside = {"weights": shard.weights, "offsets": shard.offsets}
        return _core.work_file(
            number, request, shard.path, label=shard.label, header=shard.header, format=shard.format, **beside
        )
    if _core.is_kept(number, request):
        return _core.work_rows(number, request, name=shard.name)
    X = shard.X
    if hasattr(X, "tocsr"):
        X = X.tocsr()
        X.sum_duplicates()
    if X.dtype not in (np.float64, np.float32):
        X = X.astype(np.float64)
    # What came over a network may lie anywhere in its message.
    floats = lambda values: None if values is None else np.require(values, dtype=np.float64, requirements="CA")
    numbers = [floats(values) for values in (shard.y, shard.weights, shard.offsets)]
    return _core.work_rows(number, request, rows(X, 1), *numbers, name=shard.name, names=shard.columns)


def pieces(number: int, request: bytes, shard: Any, count: int, width: int) -> list[bytes]:
    """The reply of a shard in so many pieces of such a width."""
    return _core.cut_reply(answer(number, request, shard), count, width)


def added(replies: list[bytes]) -> bytes:
    """The sum of the pieces of one number, which are in the order of the shards."""
    return _core.add_replies(replies)


class InProcess:
    """Shards of this process: the engine that others are held against.

    Parameters
    ----------
    shards : list of Rows or File
        The shards.

    Examples
    --------
    >>> import numpy as np
    >>> from obprox.cluster import Driver, InProcess, Rows
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 2.0, 3.0])
    >>> driver = Driver(InProcess([Rows(X[:2], y[:2]), Rows(X[2:], y[2:])]))
    >>> driver.cluster.shape, driver.cluster.n_shards
    ((4, 1), 2)
    """

    def __init__(self, shards: list[Any]) -> None:
        self._shards = shards

    def map(self, request: bytes) -> Iterable[bytes]:
        """The replies of the shards, one after the other."""
        return (answer(at, request, shard) for at, shard in enumerate(self._shards))


class Driver:
    """The driver's side: problems of rows that an engine reaches.

    Parameters
    ----------
    shards : Shards
        The engine.
    n_features : int, default=0
        At least that many columns.
    memory : int, default=1 GiB
        Bytes that each process may keep of what it makes of its shards. It changes no bits.
    """

    def __init__(self, shards: Shards, *, n_features: int = 0, memory: int = MEMORY) -> None:
        self._shards, self._error = shards, None
        ways = {"n_cols": n_features, "room": int(memory)}
        if hasattr(shards, "reduce"):
            ways.update(reduce=self._raising(shards.reduce), piece=int(shards.piece))
        self.cluster = self.call(_core.Cluster, self._raising(shards.map), **ways)
        if self.cluster.notice is not None:
            warnings.warn(self.cluster.notice, stacklevel=3)

    def _raising(self, function):
        """The same, whose errors are kept: the core knows its own, and others are raised again once it has ended."""

        def raising(*arguments):
            try:
                yield from function(*arguments)
            except GeneratorExit:
                raise
            except BaseException as error:
                is_known = isinstance(error, (Exception, KeyboardInterrupt))
                self._error = error if is_known else ClusterError(f"a worker broke off: {error}")
                raise RuntimeError("the engine failed") from None

        return raising

    def call(self, function: Any, *args: Any, **keywords: Any) -> Any:
        """Calls something that asks the shards; what the engine raises meanwhile is raised."""
        self._error = None
        try:
            return function(*args, **keywords)
        except DataError as error:
            if self._error is not None:
                raise self._error from error
            raise


class Distributed:
    """What estimators of every engine have in common, beside one of the local ones."""

    #: Bytes that each process may keep of what it makes of its shards.
    worker_memory = MEMORY

    def _fit_shards(self, shards: Shards, classes: Any = None, names: Any = None, n_features: int = 0) -> Any:
        """Fits the model to the rows of an engine; classes are the labels behind the numbers of the targets."""
        if (solver := solver_name(self.solver)) != "auto":
            raise ParameterError(f"solver: {solver!r} needs the rows in memory; rows on other machines have 'auto'")
        driver = Driver(shards, n_features=n_features, memory=self.worker_memory)
        names = names if names is not None else driver.cluster.names
        self.n_features_in_, self._has_offset = driver.cluster.shape[1], driver.cluster.has_offsets
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        try:
            problem = driver.call(self._state_remote, driver.cluster, classes)
            self._keep(*driver.call(self._run, [problem]))
        except KeyboardInterrupt:
            self._forget()
            raise
        self.passes_ = driver.cluster.passes
        return self

    def _state_remote(self, cluster, classes):
        """A problem of rows that are elsewhere, without penalty yet."""
        options, loss = {}, self._loss_name()
        if hasattr(self, "class_weight"):
            if classes is None:
                classes = np.asarray(cluster.labels())
                classes = classes.astype(int) if (classes == classes.astype(int)).all() else classes
                numbers = classes.tolist()
            else:
                numbers = list(range(len(classes)))
            if len(classes) < 2:
                raise ValueError(f"obprox needs samples of at least 2 classes in the data, but the data contains only {classes}")
            if len(classes) > 2:
                if loss != "logistic":
                    raise ParameterError(f"loss: {loss!r} learns two classes on a cluster, and there are {len(classes)}")
                loss = "softmax"
            self.classes_ = classes
            pairs, balanced = weights_of_classes(self.class_weight, classes)
            # The core knows the classes by the numbers that the shards have.
            options = {"class_weights": pairs and [(float(numbers[int(at)]), w) for at, w in pairs], "balanced": balanced}
        else:
            self._many = False
        n_features = cluster.shape[1]
        return _core.Problem.remote(
            cluster,
            loss,
            parameter=self._loss_parameter(),
            feature_weights=vector(getattr(self, "penalty_weights", None), n_features, "penalty_weights"),
            fit_intercept=bool(self.fit_intercept),
            threads=threads(self.n_jobs),
            **penalty(self, n_features),
            **options,
        )


def files(patterns: Any, *, weights: Any = None, offsets: Any = None, **how: Any) -> list[File]:
    """The shards that file names or patterns stand for, in the order of their names; weights and offsets are as many."""
    found = _named("files", patterns)
    beside = {}
    for name, given in (("weights", weights), ("offsets", offsets)):
        beside[name] = [None] * len(found) if given is None else _named(name, given)
        if len(beside[name]) != len(found):
            raise ParameterError(f"{name}: give a file for each of the {len(found)} shards, not {len(beside[name])}")
    return [File(path, weights=w, offsets=o, **how) for path, w, o in zip(found, beside["weights"], beside["offsets"])]


def _named(what, patterns):
    import glob

    found: list[str] = []
    for pattern in [patterns] if isinstance(patterns, (str, os.PathLike)) else patterns:
        pattern = os.fspath(pattern)
        some = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern]
        if not some:
            raise ParameterError(f"{what}: there is no file {pattern!r}")
        found += some
    return [os.path.abspath(path) for path in found]


if __name__ == "__main__":
    import sys

    from ._cluster_command import main

    sys.exit(main())
