"""Fits on Dask and on Spark whose workers are hosts of their own, beside Spark MLlib and beside one process.

    python benches/cluster/measure.py prepare DIR SET TEXT [--parts 8]     the text in parts, and those as .obx
    python benches/cluster/measure.py here DIR SET                         the passes and the bits of one process
    python benches/cluster/measure.py ladder DIR SET                       F*, and the passes to each accuracy
    python benches/cluster/measure.py mllib DIR SET --mllib 500            MLlib's F after each iteration, without a cluster
    benches/cluster/network 3 python benches/cluster/measure.py dask DIR SET --workers 3
    benches/cluster/network 3 python benches/cluster/measure.py spark DIR SET --workers 3 [--mllib 500]

A line of JSON is added to DIR/results.jsonl for each fit; report.py makes tables of them and holds the cost model against
them. λ is 1/N unless --share says a share of λ_max.
"""

import argparse
import contextlib
import functools
import glob
import hashlib
import json
import lzma
import os
import subprocess
import sys
import time

import numpy as np

DRIVER = "10.77.0.10"


def parser():
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("what", choices=["prepare", "here", "ladder", "mllib", "dask", "spark"])
    top.add_argument("directory")
    top.add_argument("set")
    top.add_argument("text", nargs="?")
    top.add_argument("--parts", type=int, default=8)
    top.add_argument("--workers", type=int, default=1)
    top.add_argument("--share", type=float, help="λ as a share of λ_max")
    top.add_argument("--tol", type=float, default=1e-7)
    top.add_argument("--mllib", type=int, default=0, help="also MLlib, so many iterations at most")
    top.add_argument("--check", action="store_true", help="Spark: the bits of its partitions in this process, too")
    top.add_argument("--memory", default="900m", help="of a Spark executor")
    return top


def parts(given, ending):
    return sorted(glob.glob(os.path.join(given.directory, f"{given.set}-part-*.{ending}")))


def note(given, **figures):
    with open(os.path.join(given.directory, "results.jsonl"), "a", encoding="utf-8") as out:
        out.write(json.dumps({"set": given.set, "what": given.what, **figures}) + "\n")
    figures.pop("each", None)
    print(json.dumps(figures), flush=True)


def prepare(given):
    import obprox

    read = lzma.open if given.text.endswith(".xz") else open
    with read(given.text, "rt") as text:
        count = sum(1 for _ in text)
    ends = [count * at // given.parts for at in range(1, given.parts + 1)]
    with read(given.text, "rt") as text:
        row = 0
        for at, end in enumerate(ends):
            name = os.path.join(given.directory, f"{given.set}-part-{at:03d}")
            with open(f"{name}.svm", "w") as out:
                while row < end:
                    out.write(next(text))
                    row += 1
            obprox._core.write_cache_file(f"{name}.svm", f"{name}.obx")


class Watched:
    """An engine whose passes are timed and whose messages are counted."""

    def __init__(self, engine):
        self._engine, self.passes = engine, []
        if hasattr(engine, "reduce"):
            self.reduce, self.piece = self._reduce, engine.piece

    def map(self, request):
        yield from self._counted("map", request, self._engine.map, ())

    def _reduce(self, request, *how):
        yield from self._counted("reduce", request, self._engine.reduce, how)

    def _counted(self, kind, request, function, how):
        begun, replied = time.perf_counter(), 0
        for reply in function(request, *how):
            replied += len(reply)
            yield reply
        self.passes.append((kind, len(request), replied, time.perf_counter() - begun))


def fit(estimator, engine, n_features=0):
    """Fits to the shards of an engine; what each pass took and where F was at the end of each round."""
    watched, rounds, begun = Watched(engine), [], time.perf_counter()

    def heard(figures):
        rounds.append((len(watched.passes), time.perf_counter() - begun, float(figures["F"])))

    estimator.callback = heard
    estimator._fit_shards(watched, n_features=n_features)
    coef = np.ravel(estimator.coef_)
    bits = hashlib.sha256(coef.tobytes() + np.ravel(estimator.intercept_).tobytes()).hexdigest()[:16]
    return {
        "F": float(estimator.certificate_.F),
        "gap": estimator.certificate_.relative_gap,
        "nnz": int(estimator.certificate_.nnz),
        "passes": len(watched.passes),
        "seconds": time.perf_counter() - begun,
        "rounds": rounds,
        "bits": bits,
        "each": watched.passes,
    }


def model(base, given, **keywords):
    """An estimator whose λ is 1/N or a share of λ_max."""

    class Model(base):
        def _penalised(self, problem):
            found = problem.with_lambda(f"{given.share}max" if given.share else "1/N", 0.0)
            self.share = found.lambda_ / found.lambda_max
            self.found_lambda = found.lambda_
            return found

    return Model(**keywords)


def sent():
    """Bytes that this host has received and sent."""
    read = lambda name: int(open(f"/sys/class/net/eth0/statistics/{name}_bytes").read())
    return read("rx"), read("tx")


def peak(pid="self"):
    """The most memory a process has had, in MB."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def here(given):
    import obprox
    from obprox.cluster import Distributed, File, InProcess

    near = type("Near", (Distributed, obprox.SparseClassifier), {})
    files = [File(path) for path in parts(given, "obx")]
    estimator = model(near, given, tol=given.tol, n_jobs=1)
    found = fit(estimator, InProcess(files))
    note(given, kind="shards", lambda_=estimator.found_lambda, share=estimator.share, **found)
    # One process with all rows in memory, by all its threads.
    X, y = whole(given)
    local = model(obprox.SparseClassifier, given, tol=given.tol)
    begun = time.perf_counter()
    local.fit(X, y)
    note(given, kind="memory", F=float(local.certificate_.F), seconds=time.perf_counter() - begun, rows=X.shape[0],
         columns=X.shape[1], nonzeros=int(X.nnz))


def ladder(given):
    """The passes after which a fit to some tolerance ends: they are those of any engine."""
    import obprox
    from obprox.cluster import Distributed, File, InProcess

    near = type("Near", (Distributed, obprox.SparseClassifier), {})
    steps = []
    for tol in [3e-1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-12]:
        found = fit(model(near, given, tol=tol), InProcess([File(path) for path in parts(given, "obx")]))
        steps.append((tol, found["passes"], found["F"]))
    note(given, steps=steps, best=found["F"])


def whole(given):
    from scipy.sparse import vstack

    import obprox

    found = [obprox.load_svmlight_file(path) for path in parts(given, "svm")]
    width = max(X.shape[1] for X, _ in found)
    for X, _ in found:
        X.resize((X.shape[0], width))
    return vstack([X for X, _ in found]).tocsr(), np.concatenate([y for _, y in found])


@contextlib.contextmanager
def processes(commands):
    """Commands that run until the end, each on its host."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [subprocess.Popen(command, **({} if os.environ.get("VERBOSE") else quiet)) for command in commands]
    try:
        yield started
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def on(host, *command):
    return ["ip", "netns", "exec", f"h{host}", *command]


def dask(given):
    from distributed import Client

    import obprox.dask as far

    os.environ["DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT"] = "60s"
    python = [sys.executable, "-m"]
    scheduler = f"tcp://{DRIVER}:8786"
    commands = [[*python, "distributed.cli.dask_scheduler", "--host", DRIVER, "--port", "8786", "--no-dashboard"]]
    for at in range(1, given.workers + 1):
        worker = ["distributed.cli.dask_worker", scheduler, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        commands.append(on(at, *python, *worker, "--host", f"10.77.0.1{at}", "--memory-limit", "0"))
    with processes(commands), Client(scheduler, timeout=60) as client:
        client.wait_for_workers(given.workers)
        from obprox.cluster import File

        base = far.SparseClassifier
        engine = lambda: far.DaskShards(client, [File(path) for path in parts(given, "obx")])
        empty = [timed(lambda: client.gather(client.map(int, range(given.parts), pure=False))) for _ in range(12)]
        before = sent()
        estimator = model(base, given, tol=given.tol, n_jobs=1)
        found = fit(estimator, engine())
        after = sent()
        note(given, workers=given.workers, received=after[0] - before[0], sent=after[1] - before[1], latency=min(empty),
             memory=peak(), **found)


def timed(work):
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def spark(given):
    import pyspark
    from pyspark.sql import SparkSession

    home = os.path.dirname(pyspark.__file__)
    os.environ.update(SPARK_HOME=home, PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable,
                      SPARK_DAEMON_MEMORY="200m", SPARK_LOCAL_IP=DRIVER)
    java = f"{home}/bin/spark-class"
    place = os.path.join(given.directory, "spark")
    commands = [[java, "org.apache.spark.deploy.master.Master", "--host", DRIVER, "--port", "7077"]]
    for at in range(1, given.workers + 1):
        ip = f"10.77.0.1{at}"
        worker = [java, "org.apache.spark.deploy.worker.Worker", f"spark://{DRIVER}:7077", "--host", ip, "--cores", "1"]
        commands.append(on(at, "env", f"SPARK_LOCAL_IP={ip}", *worker, "--memory", given.memory, "--work-dir", f"{place}/{at}"))
    with processes(commands):
        build = SparkSession.builder.master(f"spark://{DRIVER}:7077").config("spark.ui.enabled", "false")
        for name, value in {
            "spark.driver.host": DRIVER, "spark.driver.bindAddress": DRIVER, "spark.executor.memory": given.memory,
            "spark.driver.memory": "1200m", "spark.driver.maxResultSize": "0", "spark.executor.cores": "1",
            "spark.sql.files.maxPartitionBytes": "4g", "spark.sql.files.openCostInBytes": "4g", "spark.local.dir": place,
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        }.items():
            build = build.config(name, value)
        session = build.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        frame = table(given, session)
        ours(given, session, frame)
        if given.mllib:
            theirs(given, session, frame)
        session.stop()


def table(given, session):
    """The rows as MLlib has them, in memory, a partition for each file."""
    from pyspark.sql.functions import col

    read = session.read.format("libsvm").option("numFeatures", columns(given))
    # Spark orders the files of a directory by their size: one by one they keep their order.
    frame = functools.reduce(lambda all, more: all.union(more), [read.load(path) for path in parts(given, "svm")])
    frame = frame.withColumn("label", (col("label") > 0).cast("double")).persist()
    frame.count()
    assert frame.rdd.getNumPartitions() == given.parts, frame.rdd.getNumPartitions()
    return frame


def mllib(given):
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "2g")
    session = session.config("spark.sql.files.maxPartitionBytes", "4g").config("spark.sql.files.openCostInBytes", "4g").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    theirs(given, session, table(given, session))
    session.stop()


def ours(given, session, frame):
    import obprox.spark as far

    numbers = session.sparkContext.parallelize(range(given.parts), given.parts)
    empty = [timed(lambda: numbers.map(int).collect()) for _ in range(8)]
    before, begun = sent(), time.perf_counter()
    rdd = far.LogisticRegression(standardization=False)._shards(frame)
    engine = far.SparkShards(rdd)
    made = time.perf_counter() - begun
    found = fit(model(far._ClassifierOfShards, given, tol=given.tol, n_jobs=1), engine)
    after = sent()
    if given.check:
        from obprox.cluster import InProcess

        found["here"] = fit(model(far._ClassifierOfShards, given, tol=given.tol, n_jobs=1), InProcess(rdd.collect()))["bits"]
    rdd.unpersist()
    jvm = session.sparkContext._gateway.proc.pid
    note(given, workers=given.workers, received=after[0] - before[0], sent=after[1] - before[1], latency=min(empty),
         memory=peak() + jvm_peak(jvm), to_shards=made, **found)


def jvm_peak(pid):
    """Of the JVM that the driver started, or of what it became."""
    mine = [int(line) for line in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()]
    return max(peak(one) for one in [pid, *mine])


def theirs(given, session, frame):
    """MLlib: F after each iteration, and the passes by the jobs it ran."""
    from pyspark.ml.classification import LogisticRegression

    known = [json.loads(line) for line in open(os.path.join(given.directory, "results.jsonl"))]
    weight = next(line["lambda_"] for line in reversed(known) if line["set"] == given.set and line.get("kind") == "shards")
    learner = LogisticRegression(regParam=weight, elasticNetParam=1.0, standardization=False, tol=1e-12, maxIter=given.mllib)
    learner.copy({learner.maxIter: 2}).fit(frame)  # The first fit also loads classes.
    context, before = session.sparkContext, sent() if given.workers and given.what == "spark" else (0, 0)
    context.setJobGroup("mllib", "MLlib")
    begun = time.perf_counter()
    fitted = learner.fit(frame)
    seconds = time.perf_counter() - begun
    after = sent() if given.what == "spark" else (0, 0)
    jobs = len(context.statusTracker().getJobIdsForGroup("mllib"))
    jvm = context._gateway.proc.pid
    note(given, kind="mllib", workers=given.workers, seconds=seconds, jobs=jobs, history=list(fitted.summary.objectiveHistory),
         received=after[0] - before[0], sent=after[1] - before[1], memory=jvm_peak(jvm))


def columns(given):
    import obprox

    return max(obprox.load_svmlight_file(path)[0].shape[1] for path in parts(given, "svm"))


if __name__ == "__main__":
    given = parser().parse_args()
    {"prepare": prepare, "here": here, "ladder": ladder, "mllib": mllib, "dask": dask, "spark": spark}[given.what](given)
