"""Packages side by side, each fit in a fresh process, best of several; see `run`.

Writes results.json after each problem, which keeps those of before, and RESULTS.md from it.
"""

import argparse
import json
import pathlib
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version

import numpy as np
import obprox

HERE = pathlib.Path(__file__).parent
PACKAGES = ["obprox", "scikit-learn", "skglm", "celer"]
# From loose to tight: the first that is good enough is the one that counts.
TOLERANCES = {
    ("obprox", "logistic"): [1e-4, 1e-6, 1e-8],
    ("obprox", "lasso"): [1e-4, 1e-6, 1e-8],
    ("scikit-learn", "logistic"): [1e-4, 1e-5],
    ("scikit-learn", "lasso"): [1e-4, 1e-6, 1e-8],
    ("skglm", "logistic"): [1e-5, 1e-6],
    ("skglm", "lasso"): [1e-4, 1e-6, 1e-8],
    ("celer", "logistic"): [1e-4, 1e-6, 1e-8],
    ("celer", "lasso"): [1e-4, 1e-6, 1e-8],
}
# Name, file, problem, λ: 1/N or a share of λ_max.
PROBLEMS = [
    ("a9a", "a9a.xz", "logistic", None),
    ("w8a", "w8a.xz", "logistic", None),
    ("20news unigram", "20news_unigram_tfidf.svm.xz", "logistic", None),
    ("20news bigram", "20news_bigram_binary.svm.xz", "logistic", None),
    ("20news unigram", "20news_unigram_tfidf.svm.xz", "lasso", 0.1),
    ("20news unigram", "20news_unigram_tfidf.svm.xz", "lasso", 0.02),
    ("ALLAML", "ALLAML.svm.xz", "lasso", 0.05),
]
#: F may be so much above its minimum, relatively.
EXCESS = 1e-6


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("data", type=pathlib.Path)
    arguments.add_argument("--times", type=int, default=3, help="processes for each figure, of which the best counts")
    arguments.add_argument("--limit", type=float, default=120.0, help="seconds for one process")
    arguments.add_argument("--only", type=int, help="the number of one problem, from 0")
    given = arguments.parse_args()
    kept = HERE / "results.json"
    for number, (name, file, problem, share) in enumerate(PROBLEMS):
        if given.only not in (None, number):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            found = measure(given, pathlib.Path(scratch) / "data.npz", file, problem, share)
        results = json.loads(kept.read_text()) if kept.exists() else {}
        results[label(name, problem, share)] = found
        kept.write_text(json.dumps(results, indent=1) + "\n")
        write(results)


def label(name, problem, share):
    return f"{name}, {problem}, λ = " + ("1/N" if share is None else f"{share:g} λ_max")


def write(results):
    labels = [label(name, problem, share) for name, _, problem, share in PROBLEMS]
    rows = [(label, results[label]) for label in labels if label in results]
    lines = [f"| {label} | " + " | ".join(cell(found[package], found["obprox"]) for package in PACKAGES) + " |" for label, found in rows]
    versions = ", ".join(f"{name} {version(name)}" for name in ["numpy", *PACKAGES[1:]])
    text = (HERE / "RESULTS.head.md").read_text().format(python=platform.python_version(), versions=versions)
    (HERE / "RESULTS.md").write_text(text + "\n".join(lines) + "\n")
    print("\n".join(lines), flush=True)


def measure(given, path, file, problem, share):
    X, y = obprox.load_svmlight_file(given.data / file)
    y = np.where(y == y.max(), 1.0, -1.0)
    lam = 1 / len(y)
    if share is not None:
        lam = share * obprox.Lasso(alpha=1e9).fit(X, y).certificate_.lambda_max
    np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y, lam=lam)
    kind = obprox.LogisticRegression(C=1 / (lam * len(y))) if problem == "logistic" else obprox.Lasso(alpha=lam)
    best = kind.fit(X, y).certificate_.F
    # Celer's logistic regression has no intercept, and so another optimum.
    without = kind.set_params(fit_intercept=False).fit(X, y).certificate_.F if problem == "logistic" else best
    goal = {package: without if package == "celer" else best for package in PACKAGES}
    return {package: reach(given, path, package, problem, goal[package]) for package in PACKAGES}


def reach(given, path, package, problem, best):
    """The best times at the loosest tolerance whose result is good enough; None where there is none in time."""
    for tolerance in TOLERANCES[package, problem]:
        runs = []
        for _ in range(given.times):
            command = [sys.executable, HERE / "fit.py", package, problem, repr(tolerance), path]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=given.limit)
            except subprocess.TimeoutExpired:
                return shortest(runs)
            if done.returncode:
                raise SystemExit(f"{package} on {problem}: {done.stderr}")
            run = json.loads(done.stdout.splitlines()[-1])
            print(f"    {package:13} tol {tolerance:g}: {run['first']:.3f} s, {run['second']:.3f} s, excess {run['F'] / best - 1:.1e}", flush=True)
            if run["F"] / best - 1 > EXCESS:
                break
            runs.append(run)
        if runs:
            return shortest(runs)
    return None


def shortest(runs):
    return {key: min(run[key] for run in runs) for key in ("first", "second")} if runs else None


def cell(found, ours):
    if found is None:
        return "not in time"
    words = [f"{found[call]:.3f} s" + ("" if found is ours else f" = {found[call] / ours[call]:.1f}×") for call in found]
    return " / ".join(words)


main()
