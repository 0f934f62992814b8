"""Two builds of obprox in turn: `builds.py OLD NEW DATA_DIRECTORY [--times 7] [--only SET|SET]`.

The fits and paths of `measure.py`, as processes, one build after the other, best of several. Writes builds.json, from which
the table of RESULTS.md is made.
"""

import argparse
import json
import math
import pathlib
import tempfile

from measure import HERE, SETS, SHARES, Bench


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("old", type=pathlib.Path)
    arguments.add_argument("new", type=pathlib.Path)
    arguments.add_argument("data", type=pathlib.Path)
    arguments.add_argument("--times", type=int, default=7)
    arguments.add_argument("--only", default="|".join(name for name, _, _ in SETS))
    given = arguments.parse_args()
    kept = HERE / "builds.json"
    cases = json.loads(kept.read_text()) if kept.exists() else {}
    for name, source, one in SETS:
        if name in given.only.split("|"):
            for case, seconds in measure(given, name, source, one):
                cases[case] = seconds
                print(f"{case}: {seconds['old']:.4f} → {seconds['new']:.4f} s, {seconds['new'] / seconds['old']:.2f}", flush=True)
            kept.write_text(json.dumps(cases, indent=1) + "\n")
    ratios = [seconds["new"] / seconds["old"] for seconds in cases.values()]
    print(f"geometric mean of new / old: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}; largest {max(ratios):.2f}")


def measure(given, name, source, one):
    """(case, the shortest training of a fit or process of a path, of both builds), one after the other."""
    with tempfile.TemporaryDirectory() as scratch:
        benches = {}
        for build in ("old", "new"):
            given.obprox = getattr(given, build)
            benches[build] = Bench(given, pathlib.Path(scratch), None)
        text, X, _, _ = benches["old"].prepare(name, source, one)
        lambda_max = benches["old"].lambda_max(text)
        for label, lam in [("1/N", 1 / X.shape[0])] + [(f"{share} max", share * lambda_max) for share in SHARES]:
            shortest = lambda bench: bench.fit_obprox(text, lam, 1e-6, times=1)[1]
            yield f"{name}, {label}", in_turn(benches, shortest, given.times)
        shortest = lambda bench: bench.path_obprox(text, X, lambda_max, times=1)[1]
        yield f"{name}, path", in_turn(benches, shortest, max(given.times // 2, 2))


def in_turn(benches, measure, times):
    rounds = [{build: measure(bench) for build, bench in benches.items()} for _ in range(times)]
    return {build: min(one[build] for one in rounds) for build in benches}


main()
