"""Fits on Dask: the bits of the same shards in this process, for any number of workers and whatever is lost."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")

import dask.array as da  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

import obprox  # noqa: E402
import obprox.cluster  # noqa: E402
import obprox.dask as far  # noqa: E402
from obprox.cluster import File, InProcess, Rows  # noqa: E402
from obprox.exceptions import ClusterError, FileError, ObproxError, ParameterError  # noqa: E402

ROWS, SHARDS = 600, 5


def data(n_features=40, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random(ROWS, n_features, 0.2, format="csr", random_state=seed, dtype=np.float64)
    margins = X @ np.where(np.arange(n_features) % 4 == 0, 3.0, 0.0) + 0.3 * rng.normal(size=ROWS)
    return X, margins - np.median(margins)


def cuts():
    return np.linspace(0, ROWS, SHARDS + 1).astype(int)


def sparse_chunks(X):
    ends = cuts()
    blocks = [
        da.from_delayed(dask.delayed(X[a:b]), shape=(b - a, X.shape[1]), meta=sp.csr_matrix((0, 0)))
        for a, b in zip(ends, ends[1:])
    ]
    return da.concatenate(blocks, axis=0, allow_unknown_chunksizes=True)


def chunked(values):
    ends = cuts()
    return da.from_array(values, chunks=((*np.diff(ends),), *(((values.shape[1],),) if values.ndim == 2 else ())))


def near(model, X, y, weights=None, classes=None, offsets=None):
    """The same model fitted to the same shards in this process."""
    name = type(model).__mro__[1:]
    base = next(cls for cls in name if cls.__module__ == "obprox.linear_model")
    local = type("Here", (obprox.cluster.Distributed, base), {})(**model.get_params())
    ends = cuts()
    part = lambda values, a, b: None if values is None else np.asarray(values)[a:b]
    numbers = y if classes is None else np.searchsorted(classes, y)
    shards = [
        Rows(X[a:b], part(numbers, a, b), part(weights, a, b), f"chunk {at}", offsets=part(offsets, a, b))
        for at, (a, b) in enumerate(zip(ends, ends[1:]))
    ]
    return local._fit_shards(InProcess(shards), classes)


def same(a, b):
    assert np.array_equal(a.coef_, b.coef_) and np.array_equal(a.intercept_, b.intercept_)
    for name in ("F", "gap", "kkt", "nnz", "lambda_max"):
        assert a.certificate_[name] == b.certificate_[name], name


@pytest.fixture(scope="module")
def client():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        yield client


def test_estimators_have_the_bits_of_this_process(client):
    X, margins = data()
    y = np.where(margins > 0, "yes", "no")
    classes = np.array(["no", "yes"])
    weights = 1.0 + np.arange(ROWS) % 3
    model = far.LogisticRegression(C=0.5, class_weight="balanced").fit(sparse_chunks(X), chunked(y), chunked(weights))
    same(model, near(model, X, y, weights, classes))
    assert model.classes_.tolist() == ["no", "yes"] and model.certificate_.status == "converged"
    # The optimum is that of the local estimator.
    local = obprox.LogisticRegression(C=0.5, class_weight="balanced").fit(X, y, weights)
    assert abs(local.certificate_.F / model.certificate_.F - 1) < 2e-6
    assert (model.predict(X) == local.predict(X)).mean() > 0.99
    assert np.array_equal(model.predict(chunked(X.toarray())).compute(), model.predict(X))
    assert np.allclose(model.predict_proba(chunked(X.toarray())).compute(), model.predict_proba(X))
    for estimator in (far.Lasso(alpha=0.01), far.ElasticNet(alpha=0.02), far.SparseRegressor("huber", alpha=0.01)):
        same(estimator.fit(chunked(X.toarray()), chunked(margins)), near(estimator, X.toarray(), margins))
        assert np.allclose(estimator.predict(chunked(X.toarray())).compute(), estimator.predict(X))
    three = np.digitize(margins, [-0.5, 0.5])
    several = far.SparseClassifier(alpha=0.01).fit(sparse_chunks(X), chunked(three))
    same(several, near(several, X, three, classes=np.arange(3)))
    assert several.coef_.shape == (3, 40)


def test_data_frames(client):
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    X, margins = data(6)
    frame = pd.DataFrame(X.toarray(), columns=list("abcdef")).assign(y=margins)
    table = dd.from_pandas(frame, npartitions=3)
    model = far.Lasso(alpha=0.01).fit(table[list("abcdef")], table["y"])
    assert model.feature_names_in_.tolist() == list("abcdef")
    local = obprox.Lasso(alpha=0.01).fit(X, margins)
    assert np.allclose(model.coef_, local.coef_, atol=1e-4)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Shards as files."""
    directory = tmp_path_factory.mktemp("parts")
    X, margins = data(700, seed=3)
    ends = cuts()
    for at, (a, b) in enumerate(zip(ends, ends[1:])):
        lines = []
        for row in range(a, b):
            entries = [f"{j + 1}:{v!r}" for j, v in zip(X[row].indices.tolist(), X[row].data.tolist())]
            lines.append(" ".join(["1" if margins[row] > 0 else "-1", *entries]))
        (directory / f"part-{at}.svm").write_text("\n".join(lines) + "\n")
        obprox._core.write_cache_file(directory / f"part-{at}.svm", directory / f"part-{at}.obx")
    return directory


def from_files(directory, **keywords):
    local = type("Here", (obprox.cluster.Distributed, obprox.SparseClassifier), {})(**keywords)
    return local._fit_shards(InProcess([File(str(path)) for path in sorted(directory.glob("part-*.obx"))]))


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers_and_a_kill_in_the_middle(parts, workers):
    settings = {"alpha": 1e-3, "tol": 1e-9}
    expected = from_files(parts, **settings)
    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        killed = []

        def kill(_):
            if not killed:
                victim = next(iter(client.scheduler_info()["workers"].values()))
                killed.append(victim["id"])
                os.kill(client.run(os.getpid)[next(iter(client.scheduler_info()["workers"]))], signal.SIGKILL)

        model = far.SparseClassifier(**settings, callback=kill)
        model.client = client
        model.fit_files(parts / "part-*.obx")
        assert killed
        same(model, expected)


def test_all_workers_gone_is_said_in_time_and_the_checkpoint_is_kept(parts, tmp_path):
    settings = {"alpha": 1e-3, "tol": 1e-9}
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        model = far.SparseClassifier(**settings, checkpoint=tmp_path / "kept", callback=lambda _: cluster.scale(0) and None)
        model.client, model.timeout = client, 3.0
        begun = time.monotonic()
        with pytest.raises(ClusterError, match="no workers for 3 s"):
            model.fit_files(parts / "part-*.obx")
        assert time.monotonic() - begun < 30
        assert obprox._core is not None and any((tmp_path / "kept").iterdir())
        # Workers come back, and the run goes on to the same bits.
        cluster.scale(1)
        client.wait_for_workers(1)
        again = far.SparseClassifier(**settings, checkpoint=tmp_path / "kept", resume=True)
        again.client = client
        same(again.fit_files(parts / "part-*.obx"), from_files(parts, **settings))


def test_files_that_are_not_what_they_should_be_are_named(client, parts, tmp_path):
    model = far.SparseClassifier(alpha=1e-3)
    with pytest.raises(ParameterError, match="nothing-"):
        model.fit_files(tmp_path / "nothing-*.obx")
    for at in range(3):
        (tmp_path / f"part-{at}.obx").write_bytes((parts / f"part-{at}.obx").read_bytes())
    whole = (tmp_path / "part-1.obx").read_bytes()
    (tmp_path / "part-1.obx").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match="part-1.obx"):
        model.fit_files(tmp_path / "part-*.obx")
    with pytest.raises(ObproxError, match="part-9.obx"):
        model.fit_files([tmp_path / "part-0.obx", tmp_path / "part-9.obx"])
    assert not hasattr(model, "coef_")


def test_wide_replies_are_added_up_by_the_workers_to_the_same_bits(client, parts):
    settings = {"alpha": 1e-3, "tol": 1e-9}
    engine = far.DaskShards(client, list(obprox.cluster.files(parts / "part-*.obx")))
    engine.piece = 100
    reduced, sizes, whole = [], [], engine.reduce

    def reduce(request, count, width):
        reduced.append(count)
        for reply in whole(request, count, width):
            sizes.append(len(reply))
            yield reply

    engine.reduce = reduce
    same(far.SparseClassifier(**settings)._fit_shards(engine), from_files(parts, **settings))
    assert len(reduced) > 3 and max(reduced) > 6
    # A piece has sums and bounds, and the first some numbers for all.
    assert max(sizes) < 16 * max(100, 700 * 700 / 64) + 4000


def test_workers_killed_in_the_middle_of_passes(parts):
    settings = {"alpha": 1e-3, "tol": 1e-9}
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        killed = []

        class Deadly(far.DaskShards):
            piece = 100

            def _ask(self, *what):
                asked = super()._ask(*what)
                if self._passes in (1, 3, 4, 8):
                    # The tasks are there and not done: one is held up until its worker is gone.
                    client.wait_for_workers(1)
                    pids = client.run(os.getpid)
                    if pids:
                        os.kill(next(iter(pids.values())), signal.SIGKILL)
                        killed.append(self._passes)
                return asked

        engine = Deadly(client, list(obprox.cluster.files(parts / "part-*.obx")))
        model = far.SparseClassifier(**settings)._fit_shards(engine)
        assert len(killed) >= 3
        same(model, from_files(parts, **settings))


def test_weights_and_offsets_come_with_their_rows(client, tmp_path):
    X, margins = data(12, seed=4)
    offset, weights = np.arange(ROWS) % 5 * 0.3, 1.0 + np.arange(ROWS) % 3
    counts = np.floor(np.exp(np.clip(margins, -1, 1)))
    model = far.SparseRegressor("poisson", alpha=0.01)
    model.fit(sparse_chunks(X), chunked(counts), chunked(weights), chunked(offset))
    same(model, near(model, X, counts, weights, offsets=offset))
    local = obprox.SparseRegressor("poisson", alpha=0.01).fit(X, counts, weights, offset=offset)
    assert np.allclose(model.coef_, local.coef_, atol=1e-3)
    dense = chunked(X.toarray())
    assert np.allclose(model.predict(dense, chunked(offset)).compute(), local.predict(X, offset), rtol=1e-2)
    assert np.allclose(model.predict(X, offset), model.predict(dense, chunked(offset)).compute(), rtol=1e-12)
    with pytest.raises(ValueError, match="offset"):
        model.predict(dense).compute()
    # The same from files.
    for at, (a, b) in enumerate(zip(cuts(), cuts()[1:])):
        rows = ["{} {}".format(counts[row], " ".join(f"{j + 1}:{v!r}" for j, v in zip(X[row].indices.tolist(), X[row].data.tolist()))) for row in range(a, b)]
        (tmp_path / f"part-{at}.svm").write_text("\n".join(rows) + "\n")
        np.savetxt(tmp_path / f"part-{at}.w", weights[a:b], fmt="%.17g")
        np.savetxt(tmp_path / f"part-{at}.o", offset[a:b], fmt="%.17g")
    beside = {"sample_weight": tmp_path / "part-*.w", "offset": tmp_path / "part-*.o"}
    again = far.SparseRegressor("poisson", alpha=0.01).fit_files(tmp_path / "part-*.svm", n_features=12, **beside)
    same(again, model)
    with pytest.raises(ParameterError, match="a file for each of the 5 shards"):
        model.fit_files(tmp_path / "part-*.svm", offset=tmp_path / "part-0.o")
    (tmp_path / "part-3.o").write_text("0.5\n")
    with pytest.raises(FileError, match="part-3.svm"):
        model.fit_files(tmp_path / "part-*.svm", **beside)


def test_tables_of_other_columns_and_other_versions_are_refused(client, tmp_path):
    (tmp_path / "a.csv").write_text("y,u,v\n1,0.5,2\n0,1.5,3\n")
    (tmp_path / "b.csv").write_text("y,u,w\n0,2.5,1\n")
    model = far.SparseClassifier(alpha=1e-3)
    with pytest.raises(FileError, match="b.csv: has other columns"):
        model.fit_files(tmp_path / "*.csv")

    class Older(far.DaskShards):
        def map(self, request):
            # The text of the version is after the first bytes and a length.
            return super().map(request[:16] + b"0" + request[17:] if request[16:17] != b"0" else request[:16] + b"9" + request[17:])

    with pytest.raises(ObproxError, match="install the same on all machines"):
        model._fit_shards(Older(client, list(obprox.cluster.files(tmp_path / "a.csv"))))
    assert not hasattr(model, "coef_")


TELLS = """
import math, sys
from obprox.cluster import File, answer
if sys.argv[1] == "exp":
    print([math.exp(at * 0.0137 - 28.0).hex() for at in range(1, 4096)])
else:
    sys.stdout.buffer.write(answer(0, sys.stdin.buffer.read(), File(sys.argv[1])))
"""


def test_machines_that_round_differently_are_told_of_at_the_start(parts):
    # The system's library has other ways for processors without fused products, and can be asked for them.
    other = {**os.environ, "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2,-FMA_Usable,-AVX2_Usable"}
    run = lambda what, env, **more: subprocess.run([sys.executable, "-c", TELLS, what], env=env, capture_output=True, check=True, **more).stdout
    rounds_differently = run("exp", other) != run("exp", os.environ)

    class Elsewhere:
        def map(self, request):
            yield run(str(parts / "part-0.obx"), other, input=request)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        obprox.cluster.Driver(Elsewhere())
    assert any("rounds exp" in str(warning.message) for warning in said) == rounds_differently


def test_what_a_cluster_does_not_have_is_said(client):
    X, margins = data()
    with pytest.raises(ParameterError, match="needs the rows in memory"):
        far.Lasso(solver="prox-sg").fit(chunked(X.toarray()), chunked(margins))
    with pytest.raises(ParameterError, match="local estimator"):
        far.Lasso().fit(X, margins)


def test_the_command(parts, tmp_path):
    out, log = tmp_path / "model.json", tmp_path / "run.jsonl"
    command = [sys.executable, "-m", "obprox.cluster", "fit", str(parts / "part-*.obx"), "--workers", "2"]
    command += ["--lambda", "0.05max", "--tol", "1e-8"]
    done = subprocess.run([*command, "--out", out, "--log", log], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "600 rows × 700 features in 5 shards" in done.stdout
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [events[0]["event"], events[1]["event"], events[-1]["event"]] == ["start", "epoch", "end"]
    assert events[-1]["status"] == "converged" and events[-1]["passes"] > 5
    model = obprox.load(out)
    assert model.certificate_.nnz == events[-1]["nnz"]
    wrong = subprocess.run([*command, "--lambda", "much"], capture_output=True, text=True, timeout=120)
    assert wrong.returncode == 2 and "much" in wrong.stderr


def test_the_flags_of_fit_mean_the_same_and_what_is_wrong_writes_nothing(parts, tmp_path):
    from obprox._cluster_command import main

    for at in range(5):
        rows = len((parts / f"part-{at}.svm").read_text().splitlines())
        (tmp_path / f"{at}.w").write_text("".join(f"{1 + row % 3}\n" for row in range(rows)))
    (tmp_path / "free").write_text("".join(f"{0 if feature == 3 else 1}\n" for feature in range(700)))
    out, log = tmp_path / "model.json", tmp_path / "run.jsonl"
    place = ["fit", str(parts / "part-*.svm"), "--workers", "1", "--features", "700", "--quiet", "--out", str(out), "--log", str(log)]
    given = ["--weights", str(tmp_path / "*.w"), "--feature-weights", str(tmp_path / "free"), "--class-weight", "-1:2,1:0.5"]
    assert main([*place, "--lambda", "0.05max", *given]) == 0
    start, *_, end = [json.loads(line) for line in log.read_text().splitlines()]
    assert start["n_features"] == 700 and start["lambda_ratio"] == pytest.approx(0.05) and end["status"] == "converged"
    weights = np.concatenate([np.loadtxt(tmp_path / f"{at}.w") for at in range(5)])
    X, y = obprox.load_svmlight_file(parts / "part-0.svm", n_features=700)[:2]
    assert X.shape[1] == 700 and len(weights) == 600
    model = obprox.load(out)
    assert model.coef_[0][3] != 0
    for path in (out, log):
        path.unlink()
    assert main([*place, "--nnz", "7"]) == 0
    assert 0 < np.count_nonzero(obprox.load(out).coef_) <= 7
    for path in (out, log):
        path.unlink()
    wrong = [
        ["--groups", str(tmp_path / "free"), "--positive"],
        ["--bounds", str(tmp_path / "free")],
        ["--class-weight", "many"],
        ["--names", str(tmp_path / "0.w")],
        ["--offset", str(tmp_path / "0.w")],
        ["--feature-weights", str(tmp_path / "nothing")],
    ]
    for flags in wrong:
        assert main([*place, *flags]) == 2, flags
        assert not out.exists() and not log.exists(), flags


def test_a_driver_that_is_killed_resumes_to_the_same_bits(parts, tmp_path):
    command = [sys.executable, "-m", "obprox.cluster", "fit", str(parts / "part-*.obx"), "--lambda", "0.02max"]
    command += ["--tol", "1e-10", "--workers", "1", "--quiet"]
    whole = subprocess.run([*command, "--out", tmp_path / "whole.json"], capture_output=True, text=True, timeout=240)
    assert whole.returncode == 0, whole.stderr
    log = tmp_path / "run.jsonl"
    kept = ["--checkpoint", tmp_path / "kept", "--out", tmp_path / "resumed.json"]
    first = subprocess.Popen([*command, *kept, "--log", log])
    # It is killed as soon as it has a round.
    stop = threading.Event()
    while first.poll() is None and not stop.wait(0.02):
        if log.exists() and '"epoch"' in log.read_text():
            first.kill()
            break
    first.wait()
    assert any((tmp_path / "kept").iterdir())
    done = subprocess.run([*command, *kept, "--resume"], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    a, b = (obprox.load(tmp_path / name) for name in ("whole.json", "resumed.json"))
    assert np.array_equal(a.coef_, b.coef_) and a.intercept_ == b.intercept_
