"""LIBLINEAR on a cache that the `scale` measurements made, a line of their file for it.

    python3 benches/peers/scale.py target/scale/kdda-16.obx 1/N benches/scale.jsonl

λ is 1/N or, as in 2.5e-7, a number. Each tolerance is a fit of its own; the seconds are those of the fit alone.
"""

import json
import pathlib
import sys
import time

import numpy as np
import scipy.sparse as sp

from peers import Liblinear, quietly

VALUES = {0: None, 1: np.float32, 2: np.float64}


def load(path):
    """The rows and targets of an .obx file: its format stands in crates/obprox/src/data/cache.rs."""
    raw = np.memmap(path, mode="r")
    storage = int(raw[12:16].view("<u4")[0])
    n_rows, n_cols, n_entries = (int(at) for at in raw[16:40].view("<u8"))
    at = 64

    def section(count, kind):
        nonlocal at
        at = -(-at // 64) * 64
        found = raw[at : at + count * np.dtype(kind).itemsize].view(kind)
        at += found.nbytes
        return found

    y, offsets, indices = section(n_rows, "<f8"), section(n_rows + 1, "<i8"), section(n_entries, "<i4")
    kind = VALUES[storage]
    values = np.ones(n_entries) if kind is None else section(n_entries, kind).astype(float)
    return sp.csr_matrix((values, indices, offsets), shape=(n_rows, n_cols)), np.array(y)


def main():
    path, lam, keep = sys.argv[1:4]
    X, y = load(path)
    shape, part = pathlib.Path(path).stem.rsplit("-", 1)
    number = 1 / len(y) if lam == "1/N" else float(lam)
    peer = Liblinear()
    peer.prepare(X, y)
    points = []
    for tol in [1e-1, 1e-2, 1e-3, 1e-4]:
        begun = time.perf_counter()
        with quietly():
            w, b = peer.fit(number, tol)
        seconds = time.perf_counter() - begun
        F = float(np.mean(np.logaddexp(0, -y * (X @ w + b))) + number * np.abs(w).sum())
        points.append([round(seconds, 4), F, None, int(np.count_nonzero(w))])
        print(f"| LIBLINEAR, {tol:g} | {seconds:.1f} | {F:.6f} | {points[-1][3]} |", flush=True)
    line = dict(shape=shape, part=int(part), rows=len(y), columns=X.shape[1], name="liblinear", points=points)
    line["lambda"] = lam
    with open(keep, "a") as out:
        out.write(json.dumps(line) + "\n")


main()
