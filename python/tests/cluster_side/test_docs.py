"""The page on clusters is so: its blocks run, on machines that are processes here."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import obprox
import obprox.cluster
import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "cluster.md").read_text(encoding="utf-8")


def blocks(language, word):
    """The blocks of a language that have a word in them."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    return [block for block in found if word in block]


def test_every_block_is_run_here():
    count = len(re.findall(r"^```\w+$", PAGE, flags=re.MULTILINE))
    installs = blocks("sh", "pip install 'obprox[")
    named = [blocks("python", "obprox.dask"), blocks("python", "obprox.spark"), blocks("python", "class Mine"), blocks("sh", "-m obprox")]
    assert [len(found) for found in named] == [1, 1, 1, 1] and len(installs) + len(named) == count


def rows():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 6))
    return X, (X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=120) > 0).astype(float)


def shared(directory):
    """Files that every worker can open, three of them."""
    X, y = rows()
    for part in range(3):
        lines = (f"{int(label)} " + " ".join(f"{at + 1}:{value}" for at, value in enumerate(row)) for row, label in zip(X, y))
        text = directory / f"part-{part}.svm"
        text.write_text("\n".join(list(lines)[40 * part : 40 * (part + 1)]) + "\n")
        obprox._core.write_cache_file(text, directory / f"part-{part}.obx")


@pytest.fixture
def dask_cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


def test_dask(dask_cluster, tmp_path, monkeypatch):
    da = pytest.importorskip("dask.array")
    monkeypatch.chdir(tmp_path)
    shared(tmp_path)
    for name, values in zip(("rows", "labels"), rows()):
        da.to_npy_stack(tmp_path / name, da.from_array(values, chunks=(40, *values.shape[1:])))
    (block,) = blocks("python", "obprox.dask")
    names = {}
    exec(block.replace("tcp://scheduler:8786", dask_cluster.scheduler_address).replace("/shared", str(tmp_path)), names)
    names["client"].close()
    assert names["model"].certificate_.status == "converged" and names["model"].passes_ > 0
    (command,) = blocks("sh", "-m obprox")
    line = command.replace("tcp://scheduler:8786", dask_cluster.scheduler_address).replace("/shared", str(tmp_path))
    words = shlex.split(line.replace("\\\n", " "))
    done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model.json").exists() and (tmp_path / "run.jsonl").exists()


def test_spark(monkeypatch):
    # The workers are to have the package too.
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    from pyspark.ml.linalg import Vectors

    build = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = build.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    try:
        session.sparkContext.setLogLevel("OFF")
        X, y = rows()
        frame = session.createDataFrame([(float(label), Vectors.dense(row), 1.0) for row, label in zip(X, y)], ["label", "features", "w"])
        people = [(float(row[0]), float(row[1]), float(row[0] + label)) for row, label in zip(X, y)]
        names = {"frame": frame, "table": session.createDataFrame(people, ["age", "income", "label"])}
        (block,) = blocks("python", "obprox.spark")
        exec(block, names)
        assert names["model"].certificate.status == "converged"
    finally:
        session.stop()


def test_an_engine_of_your_own():
    X, y = rows()
    names = {"answer": obprox.cluster.answer}
    exec(blocks("python", "class Mine")[0], names)
    mine = names["Mine"]()
    mine.shards = [obprox.cluster.Rows(X[at : at + 40], y[at : at + 40]) for at in range(0, 120, 40)]
    local = type("Here", (obprox.cluster.Distributed, obprox.SparseClassifier), {})
    expected = local()._fit_shards(obprox.cluster.InProcess(mine.shards), np.array([0.0, 1.0]))
    found = local()._fit_shards(mine, np.array([0.0, 1.0]))
    np.testing.assert_array_equal(found.coef_, expected.coef_)
