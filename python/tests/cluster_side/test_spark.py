"""Fits on Spark: MLlib's objective, and the bits of the same partitions in this process whatever is lost."""

import os
import shutil
import signal
import sys
import time

import numpy as np
import pytest

pytest.importorskip("pyspark")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java", allow_module_level=True)

import scipy.sparse as sp  # noqa: E402
from pyspark.ml import Pipeline  # noqa: E402
from pyspark.ml.classification import LogisticRegression as TheirLogistic  # noqa: E402
from pyspark.ml.feature import VectorAssembler  # noqa: E402
from pyspark.ml.linalg import Vectors  # noqa: E402
from pyspark.ml.regression import LinearRegression as TheirLinear  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

import obprox.spark as far  # noqa: E402
from obprox.cluster import InProcess  # noqa: E402
from obprox.exceptions import ClusterError  # noqa: E402

ROWS, PARTITIONS = 400, 4


def session(master):
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    build = SparkSession.builder.master(master).config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
    build = build.config("spark.driver.bindAddress", "127.0.0.1").config("spark.sql.shuffle.partitions", "2")
    return build.config("spark.executor.memory", "512m").getOrCreate()


@pytest.fixture(scope="module")
def spark():
    # Two executors that are processes of their own, so that one can be killed.
    found = session("local-cluster[2,1,512]")
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()


def table(spark, n_features=12, kind="class", dense=False):
    rng = np.random.default_rng(5)
    X = sp.random(ROWS, n_features, 0.5, format="csr", random_state=5)
    margins = X @ np.where(np.arange(n_features) % 3 == 0, 3.0, 0.0) + 0.3 * rng.normal(size=ROWS)
    margins -= np.median(margins)
    y = {"class": (margins > 0).astype(float), "number": margins, "several": np.digitize(margins, [-0.5, 0.5]).astype(float)}[kind]
    vector = lambda row: Vectors.dense(X[row].toarray()[0]) if dense else Vectors.sparse(n_features, X[row].indices.tolist(), X[row].data.tolist())
    rows = [(float(y[row]), vector(row), float(1 + row % 3)) for row in range(ROWS)]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, PARTITIONS), ["label", "features", "w"])


def here(estimator, frame):
    """The same fit to the same partitions in this process."""
    shards = estimator._shards(frame).collect()
    assert len(shards) == PARTITIONS
    keywords = {"alpha": estimator.getRegParam(), "l1_ratio": estimator.getElasticNetParam(), "tol": estimator.getTol()}
    return estimator._local(**keywords)._fit_shards(InProcess(shards))


def same(model, local):
    assert np.array_equal(np.ravel(model.fitted.coef_), np.ravel(local.coef_))
    assert np.array_equal(model.fitted.intercept_, local.intercept_)
    assert model.certificate.F == local.certificate_.F


def test_the_optimum_is_that_of_mllib_and_the_bits_those_of_this_process(spark):
    frame = table(spark)
    given = {"regParam": 0.01, "elasticNetParam": 1.0, "standardization": False, "tol": 1e-9}
    ours = far.LogisticRegression(**given).fit(frame)
    same(ours, here(far.LogisticRegression(**given), frame))
    theirs = TheirLogistic(maxIter=500, **given).fit(frame)
    assert np.allclose(ours.coefficients.toArray(), theirs.coefficients.toArray(), atol=1e-3)
    assert ours.intercept == pytest.approx(theirs.intercept, abs=1e-3)
    done, expected = ours.transform(frame), theirs.transform(frame)
    columns = ("prediction", "probability", "rawPrediction")
    for a, b in zip(done.select(*columns).collect(), expected.select(*columns).collect()):
        assert a.prediction == b.prediction
        assert np.allclose(a.probability, b.probability, atol=1e-3) and np.allclose(a.rawPrediction, b.rawPrediction, atol=2e-2)


def test_standardization_weights_and_dense_vectors_are_mllibs(spark):
    given = {"regParam": 0.02, "elasticNetParam": 1.0, "standardization": True, "weightCol": "w", "tol": 1e-9}
    frame = table(spark, dense=True)
    ours, theirs = far.LogisticRegression(**given).fit(frame), TheirLogistic(maxIter=500, **given).fit(frame)
    assert np.allclose(ours.coefficients.toArray(), theirs.coefficients.toArray(), atol=2e-3)
    frame = table(spark, kind="number")
    given = {"standardization": False, "tol": 1e-9}
    ours = far.LinearRegression(regParam=0.02, elasticNetParam=0.5, **given).fit(frame)
    # MLlib divides the ridge part by the deviation of the labels.
    deviation = np.std([row.label for row in frame.collect()], ddof=1)
    theirs = TheirLinear(maxIter=500, regParam=0.01 * (1 + deviation), elasticNetParam=1 / (1 + deviation), **given).fit(frame)
    assert np.allclose(ours.coefficients.toArray(), theirs.coefficients.toArray(), atol=2e-3)
    with pytest.raises(ValueError, match="standardization"):
        far.LinearRegression(regParam=0.1, elasticNetParam=0.5).fit(frame)


def test_several_classes_and_a_pipeline(spark):
    model = far.LogisticRegression(regParam=0.01, standardization=False).fit(table(spark, kind="several"))
    assert model.numClasses == 3 and model.coefficientMatrix.numRows == 3
    assert {row.prediction for row in model.transform(table(spark, kind="several")).collect()} <= {0.0, 1.0, 2.0}
    rng = np.random.default_rng(0)
    rows = [(float(a), float(b), float(2 * a - b)) for a, b in rng.normal(size=(60, 2))]
    frame = spark.createDataFrame(rows, ["a", "b", "label"])
    stages = [VectorAssembler(inputCols=["a", "b"], outputCol="features"), far.LinearRegression(regParam=1e-3, standardization=False)]
    fitted = Pipeline(stages=stages).fit(frame)
    found = fitted.transform(frame).select("label", "prediction").collect()
    assert np.allclose([row.label for row in found], [row.prediction for row in found], atol=0.05)


def test_columns_and_lists_of_numbers_are_features_as_vectors_are(spark):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 3))
    rows = [(float(a), float(b), float(c), float(2 * a - b + 0.1 * c), [float(a), float(b), float(c)], float(1 + at % 2)) for at, (a, b, c) in enumerate(X)]
    frame = spark.createDataFrame(spark.sparkContext.parallelize(rows, 3), ["a", "b", "c", "label", "features", "w"])
    given = {"regParam": 0.05, "standardization": False, "weightCol": "w"}
    of_columns = far.LinearRegression(featuresCols=["a", "b", "c"], **given).fit(frame)
    of_lists = far.LinearRegression(**given).fit(frame)
    vectors = VectorAssembler(inputCols=["a", "b", "c"], outputCol="v").transform(frame)
    of_vectors = far.LinearRegression(featuresCol="v", **given).fit(vectors)
    assert of_columns.fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    for model, table in ((of_columns, frame), (of_lists, frame)):
        assert np.array_equal(model.coefficients.toArray(), of_vectors.coefficients.toArray())
        found = [row.prediction for row in model.transform(table).collect()]
        assert found == [row.prediction for row in of_vectors.transform(vectors).collect()]
    uneven = spark.createDataFrame([(1.0, [1.0, 2.0]), (0.0, [1.0])], ["label", "features"]).coalesce(1)
    with pytest.raises(Exception, match="lists of features have one length"):
        far.LinearRegression(regParam=0.1, standardization=False).fit(uneven)


def test_wide_replies_are_added_up_by_the_executors_to_the_same_bits(spark, monkeypatch):
    frame = table(spark, n_features=700)
    estimator = far.LogisticRegression(regParam=1e-3, standardization=False, tol=1e-9)
    expected = here(estimator, frame)
    monkeypatch.setattr(far.SparkShards, "piece", 100)
    counts, whole = [], far.SparkShards.reduce
    monkeypatch.setattr(far.SparkShards, "reduce", lambda self, request, count, width: counts.append(count) or whole(self, request, count, width))
    same(estimator.fit(frame), expected)
    assert len(counts) > 3 and max(counts) > 6


def test_a_run_goes_on_from_its_checkpoint_to_the_same_bits(spark, tmp_path):
    frame = table(spark, n_features=700)
    given = {"regParam": 1e-3, "standardization": False, "tol": 1e-10}
    whole = far.LogisticRegression(**given).fit(frame)
    with pytest.warns(UserWarning):
        far.LogisticRegression(maxIter=2, checkpoint=str(tmp_path), **given).fit(frame)
    again = far.LogisticRegression(checkpoint=str(tmp_path), resume=True, **given).fit(frame)
    assert again.passes < whole.passes
    assert np.array_equal(again.fitted.coef_, whole.fitted.coef_) and again.intercept == whole.intercept


def test_no_executors_is_an_error_in_time(spark, monkeypatch):
    frame = table(spark)
    monkeypatch.setattr(far.SparkShards, "_has_executors", staticmethod(lambda context: False))
    monkeypatch.setattr(far, "_shard", lambda *given: time.sleep(60))
    begun = time.monotonic()
    with pytest.raises(ClusterError, match="no executors for 2 s"):
        far.LogisticRegression(regParam=0.1, standardization=False, timeout=2.0).fit(frame)
    assert time.monotonic() - begun < 40


def test_an_executor_killed_in_the_middle_changes_no_bit(spark):
    frame = table(spark, n_features=700)
    estimator = far.LogisticRegression(regParam=1e-3, standardization=False, tol=1e-9)
    expected = here(estimator, frame)
    killed = []
    whole = far.SparkShards.map

    def kill_first(self, request):
        self._asked = getattr(self, "_asked", 0) + 1
        if self._asked == 6 and not killed:
            children = os.popen("pgrep -f CoarseGrainedExecutorBackend").read().split()
            mine = [int(pid) for pid in children if _descends(int(pid))]
            killed.append(mine[0])
            os.kill(mine[0], signal.SIGKILL)
        return whole(self, request)

    far.SparkShards.map = kill_first
    try:
        model = estimator.fit(frame)
    finally:
        far.SparkShards.map = whole
    assert killed
    same(model, expected)


def _descends(pid):
    """Whether a process is one of this one's."""
    while pid > 1:
        if pid == os.getpid():
            return True
        with open(f"/proc/{pid}/stat") as stat:
            pid = int(stat.read().rsplit(")", 1)[1].split()[1])
    return False
