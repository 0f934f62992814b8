"""Estimators for Spark's DataFrames, with the parameter names of its MLlib.

``LogisticRegression`` and ``LinearRegression`` take a DataFrame with a column of MLlib's vectors, sparse or dense, or of lists
of numbers, or with a column for each feature (``featuresCols``), and stand in a ``Pipeline`` wherever MLlib's own do; the
objective is the same. A partition is a shard. Every pass of the solver is
one job of Spark; there are some tens of them where MLlib needs hundreds for the same accuracy. Rows stay where they are.

The bits are the same for any number of executors as long as the partitions have the same rows in the same order: read them
from files, not from a shuffle without an order.
"""

from __future__ import annotations

import threading
import time
import uuid

import numpy as np
from pyspark import StorageLevel, inheritable_thread_target, keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.linalg import DenseMatrix, Vectors, VectorUDT
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param import shared
from pyspark.sql.functions import array, col, lit, udf
from pyspark.sql.types import DoubleType

from . import linear_model
from .cluster import PIECE, Distributed, Rows, added, answer, pieces
from .exceptions import ClusterError, ParameterError

__all__ = ["LinearRegression", "LinearRegressionModel", "LogisticRegression", "LogisticRegressionModel"]


class SparkShards:
    """Shards that are the partitions of an RDD of :class:`obprox.cluster.Rows`, one each or none.

    Parameters
    ----------
    rdd : pyspark.RDD
        The shards.
    timeout : float, default=60
        Seconds without any executor after which the run is given up.
    """

    def __init__(self, rdd, timeout=60.0):
        self._rdd, self._timeout = rdd, timeout
        counts = self._run(lambda rdd: rdd.mapPartitionsWithIndex(lambda at, part: [(at, sum(1 for _ in part))]))
        # Partitions without rows are no shards.
        self._numbers = {at: number for number, at in enumerate(at for at, count in enumerate(counts) if count)}

    #: Numbers of a reply that are added up on one executor before they come to the driver.
    piece = PIECE

    def map(self, request):
        """The replies of all shards, in their order."""
        numbers = self._numbers

        def ask(at, part):
            return [(numbers[at], bytes(answer(numbers[at], request, rows))) for rows in part]

        return self._run(lambda rdd: rdd.mapPartitionsWithIndex(ask))

    def reduce(self, request, count, width):
        """The sums of all shards, piece by piece: a shuffle brings those of one number together."""
        numbers = self._numbers

        def ask(at, part):
            for rows in part:
                for piece, reply in enumerate(pieces(numbers[at], request, rows, count, width)):
                    yield piece, (numbers[at], reply)

        def add(found):
            return added([reply for _, reply in sorted(found)])

        at_once = max(1, min(count, self._rdd.context.defaultParallelism))
        return self._run(lambda rdd: rdd.mapPartitionsWithIndex(ask).groupByKey(at_once).mapValues(add))

    def _run(self, job):
        """A job over all partitions, whose results are numbered; these in their order."""
        context, found = self._rdd.context, {}
        group = f"obprox-{uuid.uuid4().hex[:12]}"

        @inheritable_thread_target
        def work():
            try:
                context.setJobGroup(group, "a pass of obprox", interruptOnCancel=True)
                found["replies"] = sorted(job(self._rdd).collect(), key=lambda pair: pair[0])
            except BaseException as error:
                found["error"] = error

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        since = time.monotonic()
        while thread.is_alive():
            thread.join(0.2 if time.monotonic() - since > 2 else 0.01)
            if self._has_executors(context):
                since = max(since, time.monotonic() - 2.5)
            elif time.monotonic() - since > self._timeout:
                context.cancelJobGroup(group)
                raise ClusterError(f"Spark has had no executors for {self._timeout:g} s: start some and resume")
        if "error" in found:
            raise found["error"]
        return [reply for _, reply in found["replies"]]

    @staticmethod
    def _has_executors(context):
        if context.master == "local" or context.master.startswith("local["):
            return True
        # The driver is one of them.
        return context._jsc.sc().getExecutorMemoryStatus().size() > 1


def _shard(vectors, y, weights, name):
    """The rows of a partition."""
    from scipy.sparse import csr_matrix

    if all(hasattr(vector, "indices") for vector in vectors):
        indptr = np.concatenate([[0], np.cumsum([len(vector.indices) for vector in vectors])])
        indices = np.concatenate([vector.indices for vector in vectors]) if indptr[-1] else np.zeros(0, dtype=np.int32)
        values = np.concatenate([vector.values for vector in vectors]) if indptr[-1] else np.zeros(0)
        shape = (len(vectors), max(vector.size for vector in vectors))
        X = csr_matrix((values, indices.astype(np.int32), indptr.astype(np.int64)), shape=shape)
        X.eliminate_zeros()
    else:
        X = np.ascontiguousarray([vector.toArray() for vector in vectors])
    return Rows(X, np.asarray(y, dtype=np.float64), None if weights is None else np.asarray(weights, dtype=np.float64), name)


def _from_arrow(batches):
    """The rows of a partition as Arrow has them, label and weight first, as cells of bytes: a batch each."""
    import pickle

    import pyarrow

    for batch in batches:
        numbers = lambda at: np.asarray(batch.column(at).to_numpy(zero_copy_only=False), dtype=np.float64)
        beside, features = [numbers(0), numbers(1)], range(2, batch.num_columns)
        if len(features) == 1 and pyarrow.types.is_list(batch.column(2).type):
            lists = batch.column(2)
            lengths = np.unique(lists.value_lengths().to_numpy(zero_copy_only=False))
            if len(lengths) > 1 or not np.isfinite(lengths.astype(float)).all():
                raise ValueError(f"the column of features: lists of features have one length, and these have {lengths.tolist()}")
            flat = np.asarray(lists.flatten().to_numpy(zero_copy_only=False), dtype=np.float64)
            X = flat.reshape(len(lists), -1)
        else:
            X = np.column_stack([numbers(at) for at in features])
        cell = pyarrow.array([pickle.dumps((X, *beside))], type=pyarrow.binary())
        yield pyarrow.RecordBatch.from_arrays([cell], names=["rows"])


def _moments(rows):
    """Σw, Σw², Σwx and Σwx² of a shard."""
    w = np.ones(len(rows.y)) if rows.weights is None else rows.weights
    X = rows.X
    squares = X.multiply(X) if hasattr(X, "multiply") else X * X
    return w.sum(), (w * w).sum(), np.asarray(X.T @ w).ravel(), np.asarray(squares.T @ w).ravel()


class _Common(
    shared.HasFeaturesCol,
    shared.HasLabelCol,
    shared.HasPredictionCol,
    shared.HasRegParam,
    shared.HasElasticNetParam,
    shared.HasStandardization,
    shared.HasWeightCol,
    shared.HasFitIntercept,
    shared.HasMaxIter,
    shared.HasTol,
):
    """The parameters of both."""

    checkpoint = Param(Params._dummy(), "checkpoint", "a directory that keeps the state of the run", TypeConverters.toString)
    resume = Param(Params._dummy(), "resume", "go on from the checkpoint, to the same bits", TypeConverters.toBoolean)
    featuresCols = Param(
        Params._dummy(), "featuresCols", "columns of numbers that are the features, instead of featuresCol", TypeConverters.toListString
    )
    timeout = Param(Params._dummy(), "timeout", "seconds without any executor to give up after", TypeConverters.toFloat)

    def __init__(self, *args):
        super().__init__(*args)
        self._setDefault(regParam=0.0, elasticNetParam=1.0, standardization=True, fitIntercept=True, tol=1e-6, timeout=60.0)
        self._setDefault(resume=False)

    def _setter(name):  # noqa: N805
        def set_to(self, value):
            return self._set(**{name: value})

        set_to.__doc__ = f"Sets the value of ``{name}``."
        return set_to

    def getFeaturesCols(self):
        """The columns of numbers that are the features, or None where one column has vectors or lists."""
        return self.getOrDefault(self.featuresCols) if self.isSet(self.featuresCols) else None

    setFeaturesCol, setLabelCol = _setter("featuresCol"), _setter("labelCol")
    setFeaturesCols = _setter("featuresCols")
    setPredictionCol, setWeightCol = _setter("predictionCol"), _setter("weightCol")
    setRegParam, setElasticNetParam = _setter("regParam"), _setter("elasticNetParam")
    setStandardization, setFitIntercept = _setter("standardization"), _setter("fitIntercept")
    setMaxIter, setTol = _setter("maxIter"), _setter("tol")


class _Fits(Estimator, _Common):
    def _shards(self, dataset):
        """The partitions of a DataFrame as shards."""
        weighted = self.isDefined(self.weightCol) and self.getWeightCol()
        if self.getFeaturesCols() or not isinstance(dataset.schema[self.getFeaturesCol()].dataType, VectorUDT):
            return self._shards_of_columns(dataset, weighted)
        columns = [col(self.getFeaturesCol()), col(self.getLabelCol()).cast("double")]
        chosen = dataset.select(*columns, *([col(self.getWeightCol()).cast("double")] if weighted else []))

        def rows(at, part):
            part = list(part)
            if not part:
                return []
            vectors, y, *weights = zip(*part)
            return [_shard(vectors, y, weights[0] if weights else None, f"partition {at}")]

        return chosen.rdd.mapPartitionsWithIndex(rows).persist(StorageLevel.MEMORY_AND_DISK)

    def _shards_of_columns(self, dataset, weighted):
        """The same of columns of numbers or of lists, which come as Arrow has them."""
        names = self.getFeaturesCols()
        weight = col(self.getWeightCol()).cast("double") if weighted else lit(1.0)
        features = [col(name).cast("double") for name in names] if names else [col(self.getFeaturesCol()).cast("array<double>")]
        # Names of one's own: those of the columns may hold dots, and a number has one.
        features = [feature.alias(f"x{at}") for at, feature in enumerate(features)]
        chosen = dataset.select(col(self.getLabelCol()).cast("double").alias("y"), weight.alias("w"), *features)

        def rows(at, part):
            import pickle

            parts = [pickle.loads(row[0]) for row in part]
            if not parts:
                return []
            X, y, w = (np.concatenate(values) for values in zip(*parts))
            return [Rows(X, y, w if weighted else None, f"partition {at}", names)]

        cells = chosen.mapInArrow(_from_arrow, "rows binary").rdd
        return cells.mapPartitionsWithIndex(rows).persist(StorageLevel.MEMORY_AND_DISK)

    def _penalty_weights(self, rdd):
        """What makes the penalty that of columns of unit deviation, as MLlib has it: their deviations."""
        if not self.getStandardization() or self.getRegParam() == 0.0:
            return None
        if self.getElasticNetParam() != 1.0:
            raise ParameterError("standardization: with elasticNetParam below 1 the columns are taken as they are: set it to False, or scale them by StandardScaler")
        parts = rdd.map(_moments).collect()
        width = max(len(sums) for _, _, sums, _ in parts)
        wide = lambda sums: np.pad(sums, (0, width - len(sums)))
        total, squared = sum(part[0] for part in parts), sum(part[1] for part in parts)
        first, second = sum(wide(part[2]) for part in parts), sum(wide(part[3]) for part in parts)
        variance = (second - first * first / total) / (total - squared / total)
        return np.sqrt(np.maximum(variance, 0.0))

    def _fit(self, dataset):
        rdd = self._shards(dataset)
        try:
            shards = SparkShards(rdd, self.getOrDefault(self.timeout))
            keywords = {
                "alpha": self.getRegParam(),
                "l1_ratio": self.getElasticNetParam(),
                "penalty_weights": self._penalty_weights(rdd),
                "fit_intercept": self.getFitIntercept(),
                "tol": self.getTol(),
                "max_iter": self.getMaxIter() if self.isSet(self.maxIter) else None,
                "checkpoint": self.getOrDefault(self.checkpoint) if self.isSet(self.checkpoint) else None,
                "resume": self.getOrDefault(self.resume),
            }
            fitted = self._local(**keywords)._fit_shards(shards)
        finally:
            rdd.unpersist()
        return self._copyValues(self._made(fitted))


class _Made(Model, _Common):
    """A fitted model."""

    def __init__(self, fitted=None):
        super().__init__()
        self.fitted = fitted

    @property
    def certificate(self):
        """How far the result can be from the optimum at most, an :class:`obprox.Certificate`."""
        return self.fitted.certificate_

    @property
    def numFeatures(self):
        """n."""
        return self.fitted.n_features_in_

    @property
    def passes(self):
        """How often all partitions were asked."""
        return self.fitted.passes_

    @property
    def coefficients(self):
        """x, of one output."""
        weights = np.atleast_2d(self.fitted.coef_)
        if len(weights) > 1:
            raise AttributeError("several classes have a coefficientMatrix")
        at = np.flatnonzero(weights[0])
        return Vectors.sparse(weights.shape[1], at.tolist(), weights[0][at].tolist())

    @property
    def intercept(self):
        """b, of one output."""
        return float(np.ravel(self.fitted.intercept_)[0])

    def saveModel(self, path):
        """Writes ``model.json``, which the command and :func:`obprox.load` read."""
        self.fitted.save(path)

    def _features(self):
        """The features of a row as one column."""
        names = self.getFeaturesCols()
        return array(*(col(name).cast("double") for name in names)) if names else col(self.getFeaturesCol())

    def _margins(self):
        """A function from a vector to its margins."""
        weights = np.ascontiguousarray(np.atleast_2d(self.fitted.coef_).T)
        intercept = np.atleast_1d(np.asarray(self.fitted.intercept_, dtype=float))

        def margins(vector):
            if hasattr(vector, "indices"):
                return vector.values @ weights[vector.indices] + intercept
            return (vector.toArray() if hasattr(vector, "toArray") else np.asarray(vector, dtype=float)) @ weights + intercept

        return margins


class _RegressorOfShards(Distributed, linear_model.SparseRegressor):
    pass


class _ClassifierOfShards(Distributed, linear_model.SparseClassifier):
    pass


class LinearRegression(_Fits):
    """Least squares with an l1 or elastic net penalty, as :class:`pyspark.ml.regression.LinearRegression` states it.

    Minimises 1/(2W)·Σ wᵢ(yᵢ − x·dᵢ − b)² + regParam·(r‖x‖₁ + (1 − r)/2·‖x‖₂²) with r = ``elasticNetParam``, whose default
    here is 1. With ``standardization`` the penalty is on weights of columns of unit deviation, as in MLlib. MLlib solves
    what it states where r is 1; below, it divides the part of ‖x‖₂² by the deviation of the labels, which this does not.
    """

    @keyword_only
    def __init__(
        self,
        *,
        featuresCol="features",
        featuresCols=None,
        labelCol="label",
        predictionCol="prediction",
        maxIter=None,
        regParam=0.0,
        elasticNetParam=1.0,
        tol=1e-6,
        fitIntercept=True,
        standardization=True,
        weightCol=None,
        checkpoint=None,
        resume=False,
        timeout=60.0,
    ):
        super().__init__()
        self._set(**self._input_kwargs)

    _local = staticmethod(_RegressorOfShards)

    def _made(self, fitted):
        return LinearRegressionModel(fitted)


class LinearRegressionModel(_Made):
    """What :class:`LinearRegression` learnt; ``transform`` adds its predictions."""

    def _transform(self, dataset):
        margins = self._margins()
        predict = udf(lambda vector: float(margins(vector)[0]), DoubleType())
        return dataset.withColumn(self.getPredictionCol(), predict(self._features()))


class LogisticRegression(_Fits, shared.HasProbabilityCol, shared.HasRawPredictionCol):
    """Logistic regression with an l1 or elastic net penalty, as :class:`pyspark.ml.classification.LogisticRegression`
    states it; labels are 0, 1, … and several are learnt together.

    Minimises (1/W)·Σ wᵢ·loss + regParam·(r‖x‖₁ + (1 − r)/2·‖x‖₂²) with r = ``elasticNetParam``, whose default here is 1.
    With ``standardization`` the penalty is on weights of columns of unit deviation, as in MLlib.
    """

    @keyword_only
    def __init__(
        self,
        *,
        featuresCol="features",
        featuresCols=None,
        labelCol="label",
        predictionCol="prediction",
        probabilityCol="probability",
        rawPredictionCol="rawPrediction",
        maxIter=None,
        regParam=0.0,
        elasticNetParam=1.0,
        tol=1e-6,
        fitIntercept=True,
        standardization=True,
        weightCol=None,
        checkpoint=None,
        resume=False,
        timeout=60.0,
    ):
        super().__init__()
        self._set(**self._input_kwargs)

    _local = staticmethod(_ClassifierOfShards)

    def _made(self, fitted):
        return LogisticRegressionModel(fitted)


class LogisticRegressionModel(_Made, shared.HasProbabilityCol, shared.HasRawPredictionCol):
    """What :class:`LogisticRegression` learnt; ``transform`` adds margins, probabilities and predictions."""

    @property
    def numClasses(self):
        """How many classes there are."""
        return len(self.fitted.classes_)

    @property
    def coefficientMatrix(self):
        """x, a row for each class; one row for two."""
        weights = np.atleast_2d(self.fitted.coef_)
        return DenseMatrix(*weights.shape, weights.ravel().tolist(), True)

    @property
    def interceptVector(self):
        """b, one for each row of the matrix."""
        return Vectors.dense(np.atleast_1d(self.fitted.intercept_).tolist())

    def _transform(self, dataset):
        margins, classes = self._margins(), np.asarray(self.fitted.classes_, dtype=float)

        def raw(vector):
            found = margins(vector)
            return Vectors.dense([-found[0], found[0]] if len(found) == 1 else found)

        def probability(margins):
            # Of two classes the margin is that of one, not half the difference.
            found = margins.toArray() / (2.0 if len(margins) == 2 else 1.0)
            shares = np.exp(found - found.max())
            return Vectors.dense(shares / shares.sum())

        best = udf(lambda margins: float(classes[int(margins.toArray().argmax())]), DoubleType())
        with_raw = dataset.withColumn(self.getRawPredictionCol(), udf(raw, VectorUDT())(self._features()))
        shares = udf(probability, VectorUDT())(self.getRawPredictionCol())
        with_shares = with_raw.withColumn(self.getProbabilityCol(), shares)
        return with_shares.withColumn(self.getPredictionCol(), best(self.getRawPredictionCol()))
