"""Least squares from arrays in memory, warm: the lasso, the elastic net and the group lasso, obprox and its peers in turn.

`squares.py DATA_DIRECTORY [--only SET|SET] [--kinds lasso|elastic-net|group-lasso] [--times 5] [--limit 10]` measures and
writes squares.jsonl and SQUARES.md; `squares.py --page` writes the page alone. A peer is a process of its own that waits
to be asked, so that all can be asked in turn, and one that takes too long can be ended.
"""

import argparse
import json
import multiprocessing as mp
import pathlib
import platform
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np
import scipy.sparse as sp

warnings.filterwarnings("ignore")
HERE = pathlib.Path(__file__).parent
KINDS = ["lasso", "elastic-net", "group-lasso"]
SHARES = [0.5, 0.1, 0.01, 0.001]
#: F may be so much above its minimum, relatively.
EXCESS = 1e-6
#: The share of the l1 norm in the elastic net, and the features of a group, which are neighbours.
L1_RATIO = 0.5
GROUP = 10
SETS = {
    "a9a": "a9a.xz",
    "w8a": "w8a.xz",
    "20news unigram": "20news_unigram_tfidf.svm.xz",
    "20news bigram": "20news_bigram_binary.svm.xz",
    "ALLAML": "ALLAML.svm.xz",
    "higgs_subset": "higgs_subset.csv.xz",
    "sector": "sector.scale.xz",
    "abalone": "abalone_scale.xz",
    "diabetes": "diabetes.svm.xz",
    # Rows, columns, the correlation of neighbours, the share of the cells that is there.
    "synthetic, dense, 1000 × 2000": (1000, 2000, 0.0, 1.0),
    "synthetic, dense, 20000 × 200": (20000, 200, 0.0, 1.0),
    "synthetic, correlated, 500 × 3000": (500, 3000, 0.9, 1.0),
    "synthetic, sparse, 5000 × 20000": (5000, 20000, 0.0, 0.01),
}


def load(directory, name):
    """Rows and targets; targets are centred, which no solver minds and which makes F comparable without an intercept."""
    import obprox

    source = SETS[name]
    if isinstance(source, tuple):
        X, y = synthetic(*source)
    elif source.endswith(".csv.xz"):
        table = np.loadtxt(directory / source, delimiter=",")
        X, y = np.ascontiguousarray(table[:, 1:]), table[:, 0]
    else:
        X, y = obprox.load_svmlight_file(directory / source)
        X = np.ascontiguousarray(X.toarray()) if X.nnz > 0.5 * X.shape[0] * X.shape[1] else X.tocsr()
    return X, y - y.mean()


def synthetic(rows, columns, correlation, filled):
    """Normal entries and noise; one weight in forty is not zero."""
    rng = np.random.default_rng(0)
    if filled < 1:
        X = sp.random(rows, columns, filled, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    else:
        X = rng.normal(size=(rows, columns))
    for column in range(1, columns if correlation else 1):
        X[:, column] = correlation * X[:, column - 1] + np.sqrt(1 - correlation**2) * X[:, column]
    x = np.zeros(columns)
    chosen = slice(0, columns // 40) if not correlation else slice(0, columns, 40)
    x[chosen] = rng.normal(size=len(x[chosen]))
    return X, X @ x + rng.normal(size=rows)


def group_list(n):
    return [list(range(first, min(first + GROUP, n))) for first in range(0, n, GROUP)]


def lambda_max(X, y, kind):
    slopes = np.abs(X.T @ y) / len(y)
    if kind == "group-lasso":
        return max(np.linalg.norm(slopes[group]) / np.sqrt(len(group)) for group in group_list(X.shape[1]))
    return slopes.max() / (L1_RATIO if kind == "elastic-net" else 1.0)


def objective(X, y, kind, lam, x, b):
    loss = 0.5 * np.mean((X @ x + b - y) ** 2)
    if kind == "group-lasso":
        of = np.arange(len(x)) // GROUP
        return float(loss + lam * np.sqrt(np.bincount(of)) @ np.sqrt(np.bincount(of, weights=x**2)))
    ratio = L1_RATIO if kind == "elastic-net" else 1.0
    return float(loss + lam * (ratio * np.abs(x).sum() + 0.5 * (1 - ratio) * x @ x))


# ---- peers: (X, y, kind) → a function of (λ, tolerance) that gives (x, b) -------------------------------------------------
# The group lasso is without an intercept, which not all of them have there; the targets are centred.


def columns(X):
    return X.tocsc() if sp.issparse(X) else np.asfortranarray(X)


def of(model, X, y):
    model.fit(X, y)
    return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]) if np.size(model.intercept_) else 0.0


def obprox(X, y, kind):
    import obprox as package

    if kind == "group-lasso":
        groups = np.arange(X.shape[1]) // GROUP
        return lambda lam, tol: of(package.SparseRegressor(alpha=lam, groups=groups, fit_intercept=False, tol=tol), X, y)
    if kind == "elastic-net":
        return lambda lam, tol: of(package.ElasticNet(alpha=lam, l1_ratio=L1_RATIO, tol=tol), X, y)
    return lambda lam, tol: of(package.Lasso(alpha=lam, tol=tol), X, y)


def scikit_learn(X, y, kind):
    from sklearn.linear_model import ElasticNet, Lasso

    if kind == "group-lasso":
        return None
    X, most = columns(X), {"max_iter": 100_000}
    if kind == "elastic-net":
        return lambda lam, tol: of(ElasticNet(alpha=lam, l1_ratio=L1_RATIO, tol=tol, **most), X, y)
    return lambda lam, tol: of(Lasso(alpha=lam, tol=tol, **most), X, y)


def skglm(X, y, kind):
    import skglm as package

    X, most = columns(X), {"max_iter": 200, "max_epochs": 100_000}
    if kind == "lasso":
        return lambda lam, tol: of(package.Lasso(alpha=lam, tol=tol, **most), X, y)
    if kind == "elastic-net":
        return lambda lam, tol: of(package.ElasticNet(alpha=lam, l1_ratio=L1_RATIO, tol=tol, **most), X, y)
    from skglm.datafits import QuadraticGroup
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupBCD
    from skglm.utils.data import grp_converter

    if sp.issparse(X):
        return None
    groups = group_list(X.shape[1])
    indices, starts = grp_converter(groups, X.shape[1])
    weights = np.sqrt([len(group) for group in groups])
    datafit = QuadraticGroup(starts, indices)
    return lambda lam, tol: (
        GroupBCD(tol=tol, fit_intercept=False, **most).solve(X, y, datafit, WeightedGroupL2(lam, weights, starts, indices))[0],
        0.0,
    )


def celer(X, y, kind):
    import celer as package

    X, most = columns(X), {"max_iter": 200, "max_epochs": 100_000}
    if kind == "lasso":
        return lambda lam, tol: of(package.Lasso(alpha=lam, tol=tol, **most), X, y)
    if kind == "elastic-net":
        return lambda lam, tol: of(package.ElasticNet(alpha=lam, l1_ratio=L1_RATIO, tol=tol, **most), X, y)
    groups = group_list(X.shape[1])
    given = {"groups": groups, "weights": np.sqrt([len(group) for group in groups]), "fit_intercept": False}
    return lambda lam, tol: of(package.GroupLasso(alpha=lam, tol=tol, **given, **most), X, y)


def glmnet(X, y, kind):
    from glmnet import ElasticNet

    if kind == "group-lasso":
        return None
    X, alpha = columns(X), L1_RATIO if kind == "elastic-net" else 1.0

    def fit(lam, tol):
        # It scales the targets to a variance of one and λ with them.
        model = ElasticNet(alpha=alpha, lambda_path=np.array([lam]), standardize=False, n_splits=0, tol=tol, max_iter=10_000_000)
        model.fit(X, y)
        return model.coef_path_[:, 0], float(model.intercept_path_[0])

    return fit


def adelie(X, y, kind):
    import adelie as package

    wide = X.astype(np.float64)
    X = package.matrix.sparse(columns(wide), method="naive", n_threads=2) if sp.issparse(X) else np.asfortranarray(wide)
    n = wide.shape[1]
    groups = np.arange(0, n, GROUP) if kind == "group-lasso" else np.arange(n)
    sizes = np.diff(np.append(groups, n))

    def fit(lam, tol):
        state = package.grpnet(
            X, package.glm.gaussian(y), groups=groups, penalty=np.sqrt(sizes), lmda_path=np.array([lam]), early_exit=False,
            alpha=L1_RATIO if kind == "elastic-net" else 1.0, intercept=kind != "group-lasso", progress_bar=False, tol=tol,
            n_threads=2,
        )
        return np.ravel(state.betas[-1].toarray()), float(state.intercepts[-1])

    return fit


#: Each with its tolerances, from loose to tight: the first that is good enough is the one that counts. Ours has to prove it.
PEERS = {
    "obprox": (obprox, [EXCESS]),
    "scikit-learn": (scikit_learn, [1e-3, 1e-4, 1e-5, 1e-6, 1e-8]),
    "skglm": (skglm, [1e-3, 1e-4, 1e-5, 1e-6, 1e-8]),
    "Celer": (celer, [1e-3, 1e-4, 1e-5, 1e-6, 1e-8]),
    "glmnet": (glmnet, [1e-5, 1e-7, 1e-9, 1e-12]),
    "adelie": (adelie, [1e-5, 1e-7, 1e-9, 1e-12]),
}


def serve(name, X, y, kind, asked):
    """One peer: prepares itself, then answers fits with how long they took and what came out."""
    try:
        fit = PEERS[name][0](X, y, kind)
        asked.send("ready" if fit else None)
    except Exception as error:  # A peer that is not there, or not for such data.
        return asked.send(f"{type(error).__name__}: {error}")
    while (request := asked.recv()) is not None:
        try:
            begun = time.perf_counter()
            x, b = fit(*request)
            seconds = time.perf_counter() - begun
            asked.send((seconds, objective(X, y, kind, request[0], x, b), int(np.count_nonzero(x))))
        except Exception as error:
            asked.send(f"{type(error).__name__}: {error}")


class Peer:
    def __init__(self, name, X, y, kind, limit):
        context = mp.get_context("fork")
        self.name, self.limit = name, limit
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(name, X, y, kind, other), daemon=True)
        self.process.start()
        self.alive = self.answer(120) == "ready"

    def answer(self, limit):
        """What it says; nothing where it says nothing in time or died, after which it is ended."""
        if self.pipe.poll(limit):
            try:
                return self.pipe.recv()
            except EOFError:
                pass
        self.end()
        return None

    def fit(self, lam, tol, limit=None):
        """(seconds, F, nonzeros), or nothing."""
        if not self.alive:
            return None
        self.pipe.send((lam, tol))
        answer = self.answer(limit or self.limit)
        return answer if isinstance(answer, tuple) else None

    def end(self):
        self.alive = False
        self.process.kill()
        self.process.join()


def measure(name, kind, X, y, given):
    peers = {peer: Peer(peer, X, y, kind, given.limit) for peer in PEERS}
    most = lambda_max(X, y, kind)
    # The first call compiles.
    for peer in peers.values():
        peer.fit(0.5 * most, 1e-3, limit=120)
    for share in SHARES:
        lam = share * most
        best = peers["obprox"].fit(lam, 1e-10, limit=120)
        if best is None:
            raise SystemExit(f"{name}, {kind}, {share}: no optimum")
        best, features = best[1], best[2]
        for which, peer in peers.items():
            if not peer.alive:
                # It was too slow at a larger λ, or cannot do this at all.
                peers[which] = Peer(which, X, y, kind, given.limit) if peer.process.exitcode == -9 else peer
                peers[which].fit(0.5 * most, 1e-3, limit=120)
        enough, times = {}, {}
        for which, peer in peers.items():
            for tol in PEERS[which][1]:
                answer = peer.fit(lam, tol)
                if answer is None:
                    break
                if answer[1] - best <= EXCESS * abs(best):
                    enough[which], times[which] = tol, [answer[0]]
                    break
        for _ in range(given.times - 1):
            for which, tol in enough.items():
                if min(times[which]) < 3 and (answer := peers[which].fit(lam, tol)):
                    times[which].append(answer[0])
        line = {"data": name, "kind": kind, "share": share, "features": features,
                "seconds": {which: min(of) for which, of in times.items()}, "tol": enough}
        print(name, kind, share, {which: f"{s:.4f}" for which, s in line["seconds"].items()}, flush=True)
        yield line
    for peer in peers.values():
        peer.end()


def seconds(value):
    return f"{1e3 * value:.2g} ms" if value < 0.1 else f"{value:.2g} s" if value < 10 else f"{value:.0f} s"


def page(lines, machine):
    others = [peer for peer in PEERS if peer != "obprox"]
    text = ["# Least squares beside its peers", "", (HERE / "squares.head.md").read_text().strip(), "", machine, ""]
    for kind in KINDS:
        rows = [line for line in lines if line["kind"] == kind and "obprox" in line["seconds"]]
        if not rows:
            continue
        text += [f"## {kind.replace('-', ' ').capitalize()}", "",
                 "| data | λ/λ_max | features | obprox | " + " | ".join(others) + " | obprox / best peer |", "|---" * (5 + len(others)) + "|"]
        ratios = []
        for line in rows:
            own, best = line["seconds"]["obprox"], min([s for peer, s in line["seconds"].items() if peer != "obprox"], default=None)
            ratios.append(own / best if best else 0.0)
            cells = [seconds(line["seconds"][peer]) if peer in line["seconds"] else "–" for peer in others]
            text.append(f"| {line['data']} | {line['share']:g} | {line['features']} | {seconds(own)} | " + " | ".join(cells)
                        + f" | {f'{ratios[-1]:.2f}' if best else 'none got there'} |")
        text += ["", f"No peer is ahead in {sum(r <= 1 for r in ratios)} of {len(ratios)} cases; obprox takes at most half of the best "
                 f"peer's time in {sum(r <= 0.5 for r in ratios)}.", ""]
    return "\n".join(text)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("data", type=pathlib.Path, nargs="?")
    arguments.add_argument("--only", default="|".join(SETS))
    arguments.add_argument("--kinds", default="|".join(KINDS))
    arguments.add_argument("--times", type=int, default=5)
    arguments.add_argument("--limit", type=float, default=10.0, help="seconds for one fit")
    arguments.add_argument("--page", action="store_true")
    given = arguments.parse_args()
    kept = HERE / "squares.jsonl"
    lines = [json.loads(line) for line in kept.open()] if kept.exists() else []
    for name in [] if given.page else given.only.split("|"):
        X, y = load(given.data, name)
        for kind in given.kinds.split("|"):
            lines = [line for line in lines if (line["data"], line["kind"]) != (name, kind)]
            lines += measure(name, kind, X, y, given)
            order = list(SETS)
            lines.sort(key=lambda line: (KINDS.index(line["kind"]), order.index(line["data"]), -line["share"]))
            kept.write_text("".join(json.dumps(line) + "\n" for line in lines))
    names = ["numpy", "scikit-learn", "skglm", "celer", "python-glmnet", "adelie"]
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if "model name" in line), "unknown")
    machine = f"{model}, two cores; Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in names) + "."
    (HERE.parent / "SQUARES.md").write_text(page(lines, machine))


if __name__ == "__main__":
    main()
