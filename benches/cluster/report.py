"""Tables of benches/cluster/measure.py's results, and a model of what passes cost that is held against them.

    python benches/cluster/report.py DIR/results.jsonl

A pass takes, with W workers whose links carry B bytes a second,

    latency + (W · request + replies that reach the driver) / B + replies that workers send each other / (W · B)
            + the shards' own work / min(W, cores)

The latency is that of an empty pass, the bytes and the shards' own work are those of the same pass in one process, so nothing
is fitted to the runs that it is held against.
"""

import json
import sys

B = 125e6
CORES = 2
ACCURACIES = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6]


def table(head, rows):
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


def predicted(run, alone):
    """Seconds that the model gives a run, from the passes of one process."""
    total = 0.0
    workers = run["workers"]
    for (kind, request, received, _), (_, _, whole, own) in zip(run["each"], alone["each"]):
        between = whole * (workers - 1) / workers if kind == "reduce" else 0.0
        total += run["latency"] + (workers * request + received) / B + between / (workers * B) + own / min(workers, CORES)
    return total


def passes_to(run, steps, best, accuracy):
    """The passes of a fit to a tolerance that is enough for F to be that near to its minimum, and their seconds."""
    enough = [passes for _, passes, F in steps if F - best <= accuracy * best]
    return (min(enough), sum(seconds for *_, seconds in run["each"][: min(enough)])) if enough else None


def mllib_to(run, best, accuracy):
    history = run["history"]
    for at, F in enumerate(history):
        if F - best <= accuracy * best:
            # Its jobs are as many as its iterations and the trials of its line searches.
            share = at / max(len(history) - 1, 1)
            return round(share * run["jobs"]), share * run["seconds"]
    return None


def shown(found):
    return "–" if found is None else f"{found[0]}, {found[1]:.1f} s"


def main(path):
    runs = [json.loads(line) for line in open(path)]
    last = {}
    for run in runs:
        last[(run["set"], run["what"], run.get("kind"), run.get("workers"))] = run
    names = list(dict.fromkeys(run["set"] for run in runs))
    for name in names:
        one = lambda what, kind=None, workers=None: last.get((name, what, kind, workers))
        alone, memory = one("here", "shards"), one("here", "memory")
        best, steps = one("ladder")["best"], one("ladder")["steps"]
        print(f"\n### {name}: {memory['rows']} × {memory['columns']}, {memory['nonzeros']} nonzeros, "
              f"λ = {alone['share']:.3g} λ_max, F* = {best:.12g}")
        rows = [("one process, rows in memory", "", f"{memory['seconds']:.1f}", "", "", "", f"{memory['F'] / best - 1:.0e}", "")]
        rows.append(("one process, shard by shard", alone["passes"], f"{alone['seconds']:.1f}", "", "", "",
                     f"{alone['F'] / best - 1:.0e}", alone["bits"][:6]))
        mllib = []
        for engine in ("dask", "spark"):
            for workers in (1, 2, 3):
                if (run := one(engine, None, workers)) is None:
                    continue
                moved = f"{run['sent'] / 1e6:.1f} / {run['received'] / 1e6:.1f}"
                rows.append((f"{engine}, {workers} workers", run["passes"], f"{run['seconds']:.1f}", f"{predicted(run, alone):.1f}",
                             moved, f"{run['memory']:.0f}", f"{run['F'] / best - 1:.0e}", run["bits"][:6]))
                if (theirs := one("spark", "mllib", workers)) is not None and engine == "spark":
                    mllib.append((run, theirs))
                    moved = f"{theirs['sent'] / 1e6:.1f} / {theirs['received'] / 1e6:.1f}"
                    rows.append((f"MLlib, {workers} workers", theirs["jobs"], f"{theirs['seconds']:.1f}", "", moved,
                                 f"{theirs['memory']:.0f}", f"{min(theirs['history']) / best - 1:.0e}", ""))
        table(["", "passes", "seconds", "model, s", "MB sent / received", "driver, MB", "F/F* − 1", "bits"], rows)
        for run in filter(None, (one("spark", None, workers) for workers in (1, 2, 3))):
            if "here" in run:
                same = "the same" if run["here"] == run["bits"] else "OTHER"
                print(f"\nSpark's partitions in one process: {same} bits.")
        head = ["passes and seconds to F/F* − 1 ≤", *(f"{accuracy:.0e}" for accuracy in ACCURACIES)]
        lines = []
        for run, theirs in mllib:
            lines.append((f"Spark, {run['workers']} workers: obprox", *(shown(passes_to(run, steps, best, a)) for a in ACCURACIES)))
            lines.append((f"Spark, {run['workers']} workers: MLlib", *(shown(mllib_to(theirs, best, a)) for a in ACCURACIES)))
        for workers in (1, 2, 3):
            if (run := one("dask", None, workers)) is not None:
                lines.append((f"Dask, {workers} workers: obprox", *(shown(passes_to(run, steps, best, a)) for a in ACCURACIES)))
        table(head, lines)


def far(rate, passes=40, wide=10, nonzeros=1e11, workers=100, columns=1e7, support=1e4, link=1.25e9, cores=16):
    """What many workers would take, by the same model: passes, of which some are over all columns; nonzeros a second and core."""
    print(f"\n{workers} workers of {cores} cores, {nonzeros:.0e} nonzeros, {columns:.0e} columns, {link * 8 / 1e9:.0f} Gbit/s:")
    rows = []
    for engine, latency in (("Dask", 0.05 + 0.001 * workers * cores), ("Spark", 0.35 + 0.002 * workers * cores)):
        own = nonzeros / (workers * cores * rate)
        set_bytes = 12 * support
        narrow = latency + (workers * set_bytes + workers * cores * 8 * support) / link + own * 0.1
        # Every worker sends what its shards have of the columns to those that add them up; the driver is sent one sum of each.
        each = min(columns, nonzeros / (workers * cores)) * 12 * cores
        added = latency + each / link + 8 * columns / link + own
        whole = latency + workers * each / link + own
        rows.append((engine, f"{narrow:.1f}", f"{added:.1f}", f"{whole:.1f}",
                     f"{((passes - wide) * narrow + wide * added) / 60:.1f}", f"{((passes - wide) * narrow + wide * whole) / 60:.1f}"))
    table(["", "a pass over the set, s", "over all columns, s", "the same by whole replies, s", f"{passes} passes, min", "by whole replies, min"], rows)
    print(f"\nA worker holds {nonzeros / workers * 4 / 1e9:.0f} GB of binary rows, the driver {24 * columns / 1e6:.0f} MB; "
          f"whole replies of one pass are {workers * cores * min(columns, nonzeros / workers / cores) * 12 / 1e9:.0f} GB.")


if __name__ == "__main__":
    main(sys.argv[1])
    far(float(sys.argv[2]) if len(sys.argv) > 2 else 1e8)
