"""Measures one peer on one data set, a JSON line a measurement: `worker.py DATA.npz PEER REQUESTS.json`.

A process of its own: what it compiles, leaks or hangs on stays here, and the caller can end it.
"""

import json
import sys
import time

import numpy as np
import scipy.sparse as sp

from peers import PEERS


def load(path):
    file = np.load(path)
    if "dense" in file:
        return file["dense"], file["y"]
    X = sp.csr_matrix((file["values"], file["indices"], file["offsets"]), shape=tuple(file["shape"]))
    return X, file["y"]


def objective(X, y, lam, w, b):
    """F in double precision, whatever the peer says of itself."""
    z = -y * (X @ w + b)
    return float(np.mean(np.logaddexp(0, z)) + lam * np.abs(w).sum())


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def main():
    X, y = load(sys.argv[1])
    peer, requests = PEERS[sys.argv[2]](), json.load(open(sys.argv[3]))
    say = lambda **line: print(json.dumps(line), flush=True)
    if X.shape[1] > getattr(peer, "most_columns", X.shape[1]):
        return say(skipped=f"{X.shape[1]} columns are too many for it")
    prepared, _ = timed(lambda: peer.prepare(X, y))
    say(prepared=prepared)
    # The first call compiles; it is reported by itself, on an easy problem.
    first, _ = timed(lambda: peer.fit(requests["easy"], peer.tolerances[0]))
    say(first=first)
    for request in requests["fits"]:
        best = request["best"] if getattr(peer, "intercept", True) else request["best_without_intercept"]
        for tol in peer.tolerances:
            say(begin=[request["lambda"], tol])
            seconds, (w, b) = timed(lambda: peer.fit(request["lambda"], tol))
            F = objective(X, y, request["lambda"], w, b)
            for _ in range(4 if seconds < 0.5 else 1 if seconds < 3 else 0):
                seconds = min(seconds, timed(lambda: peer.fit(request["lambda"], tol))[0])
            say(**{"lambda": request["lambda"], "tol": tol, "seconds": seconds, "F": F, "nnz": int(np.count_nonzero(w)),
                   "excess": F - best})
            # Better than anyone asks for, or slower than anyone waits: a stricter tolerance would only take longer.
            if F - best <= 1e-8 * best or seconds > requests["limit"]:
                break
    if requests.get("path") and hasattr(peer, "path"):
        lambdas, best = requests["path"]["lambdas"], requests["path"]["best"]
        for tol in peer.tolerances:
            say(begin=["path", tol])
            seconds, fits = timed(lambda: peer.path(lambdas, tol))
            values = [objective(X, y, lam, w, b) for lam, (w, b) in zip(lambdas, fits)]
            worst = max((F - f) / f for F, f in zip(values, best))
            say(path=True, tol=tol, seconds=seconds, worst=worst)
            if worst <= 1e-6 or seconds > 5 * requests["limit"]:
                break


main()
