"""Peers and obprox in turn on the same files and objectives; see `run`."""

import argparse
import json
import lzma
import os
import pathlib
import platform
import queue
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
import report  # noqa: E402
from peers import PEERS  # noqa: E402

SHARES = [0.5, 0.1, 0.01]
# (name, file, what the labels are); the last two are generated.
SETS = [
    ("a9a", "a9a.xz", None),
    ("w8a", "w8a.xz", None),
    ("20news unigram", "20news_unigram_tfidf.svm.xz", None),
    ("20news bigram", "20news_bigram_binary.svm.xz", None),
    ("ALLAML", "ALLAML.svm.xz", None),
    ("higgs_subset", "higgs_subset.csv.xz", None),
    ("sector, class 1 or not", "sector.scale.xz", 1.0),
    ("synthetic, N >> n", ["--rows", "200000", "--cols", "100", "--per-row", "10", "--noise", "1"], None),
    ("synthetic, n >> N", ["--rows", "1000", "--cols", "200000", "--per-row", "100", "--noise", "1"], None),
]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--obprox", required=True)
    arguments.add_argument("--data", required=True, type=pathlib.Path)
    arguments.add_argument("--only", help="names of data sets, separated by |")
    arguments.add_argument("--peers", help="names of peers, separated by |: measures these alone, and keeps the rest")
    arguments.add_argument("--limit", type=float, default=20.0, help="seconds for one fit of a peer")
    arguments.add_argument("--path-limit", type=float, default=120.0, help="seconds for a path of a peer")
    given = arguments.parse_args()
    results = HERE / "results.jsonl"
    only = given.only.split("|") if given.only else [name for name, _, _ in SETS]
    peers = given.peers.split("|") if given.peers else None
    kept = []
    if results.exists():
        anew = lambda line: line.get("data") in only and (peers is None or line.get("peer") in peers)
        kept = [line for line in map(json.loads, results.open()) if "machine" not in line and not anew(line)]
    with tempfile.TemporaryDirectory() as scratch, results.open("w") as out:
        bench = Bench(given, pathlib.Path(scratch), out)
        bench.write(machine=machine())
        for line in kept:
            bench.write(**line)
        for name, source, one in SETS:
            if name in only and peers:
                bench.measure_more(name, source, one, peers, [line for line in kept if line.get("data") == name])
            elif name in only:
                bench.measure(name, source, one)
    report.write(results, HERE.parent)


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if "model name" in line), "unknown")
    from importlib.metadata import version

    names = ["numpy", "scikit-learn", "liblinear-official", "skglm", "celer", "glum", "cyanure", "snapml", "adelie", "python-glmnet", "skein-glm"]
    return {
        "processor": model, "cores": os.cpu_count(), "python": platform.python_version(),
        "versions": {name: version(name) for name in names},
    }


class Bench:
    def __init__(self, given, scratch, out):
        self.given, self.scratch, self.out = given, scratch, out
        self.obprox = str(pathlib.Path(given.obprox).resolve())

    def write(self, **line):
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()

    # ---- data -----------------------------------------------------------------------------------------------------

    def prepare(self, name, source, one):
        """The text file that obprox reads, and the arrays that the peers get."""
        text = self.scratch / "data.svm"
        if isinstance(source, list):
            subprocess.run([self.obprox, "data", "synth", text, "--quiet", *source], check=True)
        elif source.endswith(".csv.xz"):
            table = np.loadtxt(lzma.open(self.given.data / source, "rt"), delimiter=",", skiprows=0)
            text = self.scratch / "data.csv"
            text.write_bytes(lzma.open(self.given.data / source).read())
            X, y = np.ascontiguousarray(table[:, 1:]), table[:, 0]
            return text, X, np.where(y == y.max(), 1.0, -1.0), None
        else:
            content = lzma.open(self.given.data / source).read()
            if one is not None:
                lines = (line.split(b" ", 1) for line in content.splitlines())
                content = b"\n".join((b"1 " if float(y) == one else b"-1 ") + rest for y, rest in lines) + b"\n"
            text.write_bytes(content)
        begun = time.perf_counter()
        X, y = load_svmlight_file(str(text))
        loading = time.perf_counter() - begun
        y = np.where(y == y.max(), 1.0, -1.0)
        if X.nnz > 0.5 * X.shape[0] * X.shape[1]:
            X = np.ascontiguousarray(X.toarray())
        return text, X, y, loading

    def store(self, X, y):
        path = self.scratch / "data.npz"
        if sp.issparse(X):
            np.savez(path, values=X.data, indices=X.indices, offsets=X.indptr, shape=X.shape, y=y)
        else:
            np.savez(path, dense=X, y=y)
        return path

    # ---- obprox ---------------------------------------------------------------------------------------------------

    def run_obprox(self, *arguments):
        begun = time.perf_counter()
        done = subprocess.run([self.obprox, *map(str, arguments), "--quiet"], capture_output=True, text=True)
        seconds = time.perf_counter() - begun
        if done.returncode:
            raise SystemExit(f"obprox {' '.join(map(str, arguments))}: {done.stderr}")
        return seconds

    def fit_obprox(self, text, lam, tol, *more, times=5):
        """The shortest of several whole processes, from the text file to the model file, the shortest of their
        trainings, the last event, and the model."""
        model, log = self.scratch / "model.json", self.scratch / "run.jsonl"
        extra = ["--label", "first"] if text.suffix == ".csv" else []
        command = ["fit", text, "--lambda", repr(lam), "--tol", repr(tol), "--out", model, "--log", log, *extra, *more]
        whole, training = [], []
        for _ in range(times):
            whole.append(self.run_obprox(*command))
            end = json.loads(log.read_text().splitlines()[-1])
            training.append(end["seconds"])
        return min(whole), min(training), end, json.loads(model.read_text())

    # ---- one data set ---------------------------------------------------------------------------------------------

    def measure(self, name, source, one):
        print(f"== {name}", flush=True)
        text, X, y, loading = self.prepare(name, source, one)
        rows, columns = X.shape
        nnz = int(X.nnz) if sp.issparse(X) else int(X.size)
        self.write(data=name, rows=rows, columns=columns, nnz=nnz, loading=loading)
        lambda_max = self.lambda_max(text)
        fits = []
        for label, lam in [("1/N", 1 / rows)] + [(f"{share} max", share * lambda_max) for share in SHARES]:
            seconds, training, end, model = self.fit_obprox(text, lam, 1e-10, times=1)
            best = self.objective(X, y, lam, model)
            _, _, _, without = self.fit_obprox(text, lam, 1e-10, "--no-intercept", times=1)
            fits.append({"lambda": lam, "label": label, "best": best,
                         "best_without_intercept": self.objective(X, y, lam, without)})
            self.write(data=name, label=label, **{"lambda": lam}, lambda_max=lambda_max, best=best,
                       gap=end["gap"], nnz_best=end["nnz"])
            # The first two as the peers have theirs: whether F is near enough is seen afterwards.
            for tol in (1e-1, 1e-2, 1e-3, 1e-6):
                seconds, training, end, model = self.fit_obprox(text, lam, tol)
                F = self.objective(X, y, lam, model)
                self.write(data=name, label=label, peer="obprox", tol=tol, whole=seconds, seconds=training, F=F,
                           excess=F - best, gap=end["gap"], status=end["status"])
                print(f"{label:9} obprox tol {tol:g}: {seconds:.3f} s, excess {F - best:.1e}", flush=True)
        path, seconds = self.path_obprox(text, X, lambda_max)
        self.write(data=name, peer="obprox", path=True, whole=seconds, tol=1e-6)
        print(f"path: obprox {seconds:.2f} s", flush=True)
        arrays = self.store(X, y)
        for peer in PEERS:
            self.measure_peer(name, peer, arrays, fits, path, 0.5 * lambda_max)

    def measure_more(self, name, source, one, peers, known):
        """Some peers on a data set of which the rest is known."""
        print(f"== {name}", flush=True)
        text, X, y, _ = self.prepare(name, source, one)
        optima = [line for line in known if "best" in line]
        fits = [{"lambda": line["lambda"], "label": line["label"], "best": line["best"]} for line in optima]
        lambda_max = optima[0]["lambda_max"]
        path, _ = self.path_obprox(text, X, lambda_max, times=1)
        arrays = self.store(X, y)
        for peer in peers:
            self.measure_peer(name, peer, arrays, fits, path, 0.5 * lambda_max)

    def lambda_max(self, text):
        log = self.scratch / "run.jsonl"
        extra = ["--label", "first"] if text.suffix == ".csv" else []
        self.run_obprox("fit", text, "--lambda", "0.9max", "--log", log, *extra)
        return json.loads(log.read_text().splitlines()[0])["lambda_max"]

    def path_obprox(self, text, X, lambda_max, times=3):
        """A path of 100 lambdas with the optimum at each of them, and how long the whole process took."""
        ratio = 1e-2 if X.shape[0] < X.shape[1] else 1e-3
        lambdas = [lambda_max * (1 - 1e-9) * ratio ** (at / 99) for at in range(100)]
        extra = ["--label", "first"] if text.suffix == ".csv" else []
        given = ["--at", ",".join(map(repr, lambdas))]
        table = self.scratch / "path.csv"
        command = ["path", text, *given, *extra]
        seconds = min(self.run_obprox(*command, "--out", table) for _ in range(times))
        lines = [line.split(",") for line in table.read_text().splitlines()]
        best = [float(line[lines[0].index("F")]) for line in lines[1:]]
        return {"lambdas": lambdas, "best": best}, seconds

    def objective(self, X, y, lam, model):
        w = np.zeros(X.shape[1])
        w[model["indices"]] = model["values"]
        z = -y * (X @ w + model["intercept"])
        return float(np.mean(np.logaddexp(0, z)) + lam * np.abs(w).sum())

    def measure_peer(self, name, peer, arrays, fits, path, easy):
        """All fits and the path of one peer. Where it takes too long it is ended, and goes on with the next."""
        labels = {fit["lambda"]: fit["label"] for fit in fits}
        requests = self.scratch / "requests.json"
        while fits or path:
            requests.write_text(json.dumps({"fits": fits, "path": path, "easy": easy, "limit": self.given.limit}))
            worker = subprocess.Popen([sys.executable, HERE / "worker.py", arrays, peer, requests],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            gave_up = self.listen(name, peer, worker, labels)
            if not gave_up:
                return
            # Not once more what took too long, nor what came before it.
            if gave_up[0] == "path":
                return
            fits = fits[1 + [fit["lambda"] for fit in fits].index(gave_up[0]):]

    def listen(self, name, peer, worker, labels):
        """Writes down what a worker says; what it was at if it had to be ended."""
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(line) for line in worker.stdout] + [lines.put(None)],
                         daemon=True).start()
        under_way, limit = None, 120.0
        while True:
            try:
                line = lines.get(timeout=limit)
            except queue.Empty:
                worker.kill()
                self.write(data=name, peer=peer, gave_up=under_way, limit=limit,
                           label=labels.get(under_way[0], "path") if under_way else "first call")
                print(f"{peer}: gave up at {under_way} after {limit:g} s", flush=True)
                return under_way
            if line is None:
                break
            line = json.loads(line) if line.startswith("{") else {}
            if "begin" in line:
                under_way = line["begin"]
                limit = self.given.path_limit if under_way[0] == "path" else 3 * self.given.limit
                continue
            if not line:
                continue
            if "lambda" in line:
                line["label"] = labels[line["lambda"]]
                print(f"{line['label']:9} {peer} tol {line['tol']:g}: {line['seconds']:.3f} s, "
                      f"excess {line['excess']:.1e}", flush=True)
            self.write(data=name, peer=peer, **line)
        if worker.wait():
            self.write(data=name, peer=peer, failed=worker.stderr.read().strip().splitlines()[-1:])
        return None


if __name__ == "__main__":
    main()
