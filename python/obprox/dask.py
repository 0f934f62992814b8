"""The estimators over rows of a Dask cluster, with the parameters and attributes of the local ones.

``fit`` takes dask arrays (of numpy or scipy CSR chunks) and dask dataframes; ``fit_files`` takes files that are opened where
the workers are. A chunk is a shard and a task: where its worker is lost it is computed again elsewhere, to the same bits.
While the rows fit one machine a fit there is faster.
"""

from __future__ import annotations

import copy
import time
import uuid
from operator import getitem
from typing import Any

import numpy as np

from . import linear_model
from .cluster import PIECE, Distributed, Rows, added, answer, files, pieces
from .exceptions import ClusterError, ParameterError

__all__ = ["ElasticNet", "Lasso", "LogisticRegression", "SparseClassifier", "SparseRegressor"]

#: A request that is larger is sent to one worker, and the others have it from there.
_LARGE = 1 << 16


def _same(request):
    return request


class DaskShards:
    """Shards that are tasks of a cluster.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    shards : list
        Futures of :class:`obprox.cluster.Rows`, or :class:`obprox.cluster.File`.
    timeout : float, default=60
        Seconds without any worker after which the run is given up.
    """

    def __init__(self, client: Any, shards: list[Any], timeout: float = 60.0) -> None:
        self._client, self._shards, self._timeout = client, shards, timeout
        self._run, self._passes = uuid.uuid4().hex[:12], 0

    #: Numbers of a reply that are added up on one worker before they come to the driver.
    piece = PIECE

    def map(self, request: bytes) -> Any:
        """The replies of all shards, in their order."""
        return self._each(self._ask(answer, request))

    def reduce(self, request: bytes, count: int, width: int) -> Any:
        """The sums of all shards, piece by piece: each added up on a worker, which has the others send it theirs."""
        asked = self._ask(pieces, request, count, width)
        name = self._name()
        sums = []
        for piece in range(count):
            keys = [f"{name}-{at}-piece-{piece}" for at in range(len(asked))]
            parts = self._client.map(getitem, asked, [piece] * len(asked), key=keys)
            sums.append(self._client.submit(added, parts, key=f"{name}-sum-{piece}"))
        del asked, parts
        return self._each(sums)

    def _name(self):
        return f"obprox-{self._run}-{self._passes}"

    def _ask(self, function, request, *more):
        """Has a function called for every shard, as tasks."""
        self._passes += 1
        if len(request) > _LARGE:
            # A task and not scattered data, which would be lost with its worker.
            request = self._client.submit(_same, request, key=f"{self._name()}-request")
        numbers = list(range(len(self._shards)))
        same = [[value] * len(numbers) for value in (request, *more)]
        keys = [f"{self._name()}-{at}" for at in numbers]
        return self._client.map(function, numbers, same[0], self._shards, *same[1:], key=keys, retries=2)

    def _each(self, asked):
        for at, future in enumerate(asked):
            yield self._reply(future)
            asked[at] = None

    def _reply(self, future):
        """What a task gives, as long as there is someone to do it."""
        from distributed import TimeoutError as NotYet

        since = time.monotonic()
        while True:
            try:
                return future.result(timeout=1.0)
            except (NotYet, TimeoutError):
                pass
            except Exception as error:
                if type(error).__name__ in ("CancelledError", "FutureCancelledError", "CommClosedError"):
                    raise ClusterError(f"the scheduler of the cluster is gone: {error}") from error
                if type(error).__name__ == "KilledWorker":
                    raise ClusterError(f"worker after worker ended on the same shard: {error}") from error
                raise
            if self._client.status != "running" or not self._workers():
                if time.monotonic() - since > self._timeout:
                    raise ClusterError(f"the cluster has had no workers for {self._timeout:g} s: start some and resume")
            else:
                since = time.monotonic()

    def _workers(self):
        try:
            return self._client.scheduler_info(n_workers=-1)["workers"]
        except TypeError:
            return self._client.scheduler_info()["workers"]
        except Exception:
            return {}


class _Dask(Distributed):
    """What makes a local estimator one of a cluster."""

    #: Seconds without any worker after which a fit is given up.
    timeout = 60.0
    #: The cluster; None is the one at hand.
    client = None

    def _client(self):
        from distributed import get_client

        return self.client if self.client is not None else get_client()

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : dask array of shape (n_samples, n_features) or dask dataframe
            The rows. A chunk (of all columns) is a shard.
        y : dask array or series of shape (n_samples,)
            The targets.
        sample_weight : dask array or series of shape (n_samples,), default=None
            How much each row counts.
        offset : dask array or series of shape (n_samples,), default=None
            What is added to the margin of each row; predictions then need it too.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        import dask

        client = self._client()
        names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
        X, y, w, o = _aligned(X, y=y, sample_weight=sample_weight, offset=offset)
        told = client.gather(client.compute([dask.delayed(_tell)(part, self._has_classes()) for part in y]))
        classes = np.unique(np.concatenate([labels for _, labels in told])) if self._has_classes() else None
        make = dask.delayed(_rows)
        parts = [
            make(x, t, weights, offsets, f"chunk {at}", names, classes)
            for at, (x, t, weights, offsets) in enumerate(zip(X, y, w, o))
            if told[at][0] > 0
        ]
        return self._fit_shards(DaskShards(client, client.compute(parts), self.timeout), classes, names)

    def fit_files(
        self,
        paths: Any,
        *,
        n_features: int = 0,
        label: str | None = None,
        sample_weight: Any = None,
        offset: Any = None,
        **how: Any,
    ) -> Any:
        """Fit the model to files that every worker can open, each of them a shard.

        Parameters
        ----------
        paths : str, path-like or list of them
            Files or patterns such as ``'part-*.obx'``: caches, LIBSVM text or CSV, compressed or not.
        n_features : int, default=0
            At least that many columns.
        label : str, default=None
            The column of the targets, of CSV files.
        sample_weight, offset : str, path-like or list of them, default=None
            Files or patterns, one file for each shard: how much each row counts, what is added to its margin; a number a
            line.
        **how
            ``header``, whether CSV files have one; ``format``, ``'libsvm'``, ``'csv'`` or ``'cache'``: where these should not
            be told by content.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        found = files(paths, label=label, weights=sample_weight, offsets=offset, **how)
        return self._fit_shards(DaskShards(self._client(), found, self.timeout), n_features=n_features)

    def _has_classes(self):
        return hasattr(self, "class_weight")

    def _local(self, method, X, offset, dtype):
        """A prediction of a local estimator, chunk by chunk where X is one of Dask's."""
        # Workers have no use for the connection to the cluster.
        model = copy.copy(self)
        vars(model).pop("client", None)
        local = getattr(super(_Dask, model), method)
        if offset is not None and hasattr(X, "numblocks"):
            # A column more, so that rows and their offsets stay together.
            import dask.array

            beside = dask.array.asarray(offset).rechunk((X.chunks[0],))[:, None]
            one = lambda rows, column: local(rows, np.ravel(column))
            return dask.array.map_blocks(one, X.rechunk({1: -1}), beside, dtype=dtype, drop_axis=1)
        if offset is not None:
            return local(X, offset)
        if hasattr(X, "map_blocks") and hasattr(X, "numblocks"):
            X = X.rechunk({1: -1})
            several = method == "predict_proba" or (method == "decision_function" and len(self.coef_) > 1)
            if several:
                columns = len(self.classes_)
                return X.map_blocks(local, dtype=dtype, chunks=(X.chunks[0], (columns,)))
            return X.map_blocks(local, dtype=dtype, drop_axis=1)
        if hasattr(X, "map_partitions"):
            return X.to_dask_array().map_blocks(local, dtype=dtype, drop_axis=1 if method == "predict" else None)
        return local(X)


def _tell(y, has_classes):
    y = np.asarray(y)
    return len(y), np.unique(y) if has_classes else None


def _rows(X, y, weights, offsets, name, columns, classes):
    y = np.asarray(y).ravel()
    if classes is not None:
        y = np.searchsorted(classes, y)
    X = X.to_numpy() if hasattr(X, "to_numpy") else X
    floats = lambda values: None if values is None else np.asarray(values, dtype=np.float64).ravel()
    return Rows(X, floats(y), floats(weights), name, columns, floats(offsets))


def _aligned(X, **beside):
    """The chunks of X and of what stands beside its rows, of the same rows each."""
    import dask.array

    def chunks(values):
        return [None] * len(parts) if values is None else list(np.ravel(values.to_delayed()))

    if hasattr(X, "npartitions") and not hasattr(X, "numblocks"):
        parts = list(X.to_delayed())
        for name, values in beside.items():
            if values is not None and getattr(values, "npartitions", None) != len(parts):
                raise ParameterError(f"{name}: give one with the partitions of X, {len(parts)}")
    else:
        if not hasattr(X, "numblocks"):
            raise ParameterError("X: give a dask array or dataframe, or use the local estimator of the same name")
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        parts = list(np.ravel(X.to_delayed()))
        along = lambda values: (
            values if values is None or hasattr(values, "to_delayed") else dask.array.from_array(np.asarray(values), chunks=-1)
        )
        known = not np.isnan(X.shape[0])
        fit_to = lambda values: values.rechunk((X.chunks[0],)) if values is not None and known and hasattr(values, "rechunk") else values
        beside = {name: fit_to(along(values)) for name, values in beside.items()}
    for name, values in beside.items():
        if len(chunks(values)) != len(parts):
            raise ParameterError(f"{name}: {len(chunks(values))} chunks for the {len(parts)} of X")
    return parts, *(chunks(values) for values in beside.values())


class LogisticRegression(_Dask, linear_model.LogisticRegression):
    """:class:`obprox.LogisticRegression` over rows of a Dask cluster."""

    def predict(self, X: Any, offset: Any = None) -> Any:
        """The most likely class of each row."""
        return self._local("predict", X, offset, self.classes_.dtype)

    def decision_function(self, X: Any, offset: Any = None) -> Any:
        """The margins of each row."""
        return self._local("decision_function", X, offset, float)

    def predict_proba(self, X: Any, offset: Any = None) -> Any:
        """The probability of each class."""
        return self._local("predict_proba", X, offset, float)


class SparseClassifier(_Dask, linear_model.SparseClassifier):
    """:class:`obprox.SparseClassifier` over rows of a Dask cluster."""

    def predict(self, X: Any, offset: Any = None) -> Any:
        """The most likely class of each row."""
        return self._local("predict", X, offset, self.classes_.dtype)

    def decision_function(self, X: Any, offset: Any = None) -> Any:
        """The margins of each row."""
        return self._local("decision_function", X, offset, float)


class _Regressor(_Dask):
    def predict(self, X: Any, offset: Any = None) -> Any:
        """The number predicted for each row."""
        return self._local("predict", X, offset, float)


class ElasticNet(_Regressor, linear_model.ElasticNet):
    """:class:`obprox.ElasticNet` over rows of a Dask cluster."""


class Lasso(_Regressor, linear_model.Lasso):
    """:class:`obprox.Lasso` over rows of a Dask cluster."""


class SparseRegressor(_Regressor, linear_model.SparseRegressor):
    """:class:`obprox.SparseRegressor` over rows of a Dask cluster."""
