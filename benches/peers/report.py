"""results.jsonl → benches/RESULTS.md and a plot for each data set."""

import json
import math
import pathlib
import sys
from collections import defaultdict

LABELS = ["1/N", "0.5 max", "0.1 max", "0.01 max"]
# Why the aim is missed where it is: written by hand, held to the tables beside it.
READING = pathlib.Path(__file__).parent / "reading.md"


def write(results, into):
    lines = [json.loads(line) for line in open(results)]
    machine = next(line["machine"] for line in lines if "machine" in line)
    sets = defaultdict(list)
    for line in lines:
        if "data" in line:
            sets[line["data"]].append(line)
    (into / "plots").mkdir(exist_ok=True)
    for name, of in sets.items():
        plot(name, of, into / "plots" / f"{slug(name)}.svg")
    (into / "RESULTS.md").write_text(page(machine, sets))


def slug(name):
    # N and n are the same letter to some file systems.
    name = name.replace("N >> n", "many rows").replace("n >> N", "many columns")
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower()).strip("-").replace("--", "-")


def reached(of, label, share):
    """The fastest peer with F within a share of the optimum; Celer has an optimum of its own."""
    best = next(line["best"] for line in of if line.get("label") == label and "best" in line)
    fits = [line for line in of if line.get("label") == label and "peer" in line and line["peer"] != "obprox"
            and "excess" in line and line["excess"] <= share * best]
    return min(fits, key=lambda line: line["seconds"], default=None)


def ours(of, label, tol):
    return next(line for line in of if line.get("label") == label and line.get("peer") == "obprox" and line["tol"] == tol)


def roughly(of, label, share):
    """Our fastest with F within a share of the optimum, whatever it was asked for: as the peers are looked at."""
    best = next(line["best"] for line in of if line.get("label") == label and "best" in line)
    fits = [line for line in of if line.get("label") == label and line.get("peer") == "obprox" and line["excess"] <= share * best]
    return min(fits, key=lambda line: line["seconds"])


def paths_in_short(sets):
    """How our paths stand to the fastest that are as exact as ours: every F within 10⁻⁶."""
    ratios = []
    for of in sets.values():
        paths = [line for line in of if line.get("path") is True]
        own = next((line["whole"] for line in paths if line["peer"] == "obprox"), None)
        exact = [line["seconds"] for line in paths if line["peer"] != "obprox" and line["worst"] <= 1e-6]
        if own:
            ratios.append(own / min(exact) if exact else 0.0)
    none = sum(ratio == 0.0 for ratio in ratios)
    return (f"Against the fastest peer whose every F is within 10⁻⁶, the aim of a half is met on {sum(ratio <= 0.5 for ratio in ratios)} "
            f"of {len(ratios)} sets, {none} of them for want of such a peer; no peer is ahead on {sum(ratio <= 1 for ratio in ratios)}.")


def seconds(value):
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def page(machine, sets):
    text = ["# obprox and its peers, side by side", ""]
    text.append(
        "Made by `benches/peers/run DATA_DIRECTORY --limit 2 --path-limit 20`; every number below is of one run of it, unless said otherwise. A peer has three "
        "times the limit for a fit before it is ended. All solve the same problem on the "
        "same file: min (1/N) Σ log(1 + e^(−y(x·w+b))) + λ‖w‖₁, b free (Celer: without b, against its own optimum). Every F is "
        "computed anew in double precision from the weights that came out. Times are in seconds, the shortest of several.\n\n"
        "* **whole**: obprox as a process, from the text file to the model file, with a certified relative gap at most the "
        "tolerance.\n"
        "* **peer**: the fit alone, warm: no loading, no conversion, no first call. Those are in the last table.\n"
        "* **ratio**: whole / peer. The aim is 0.5 or less (0.02 on a9a).\n"
    )
    text.append(f"Machine: {machine['processor']}, {machine['cores']} cores, Python {machine['python']}; "
                + ", ".join(f"{name} {version}" for name, version in machine["versions"].items()) + ".\n")
    text += ["## To F within 10⁻⁶ of the optimum (relative)", "",
             "| data | λ | features | obprox whole | training | certified gap | best peer | its fit | ratio |",
             "|---|---|---|---|---|---|---|---|---|"]
    tally = []
    for name, of in sets.items():
        for label in LABELS:
            if not any(line.get("label") == label and "best" in line for line in of):
                continue
            own, peer = ours(of, label, 1e-6), reached(of, label, 1e-6)
            features = next(line["nnz_best"] for line in of if line.get("label") == label and "best" in line)
            row = [name, label, str(features), seconds(own["whole"]), seconds(own["seconds"]), f"{own['gap'] / own['F']:.0e}"]
            if peer:
                ratio = own["whole"] / peer["seconds"]
                tally.append((ratio, 0.02 if name == "a9a" else 0.5))
                row += [peer["peer"], seconds(peer["seconds"]), f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"]
            else:
                row += ["none got there", "–", "–"]
            text.append("| " + " | ".join(row) + " |")
    met = sum(ratio <= aim for ratio, aim in tally)
    faster = sum(ratio < 1 for ratio, _ in tally)
    text += ["", f"The aim is met in {met} of {len(tally)} cases; the whole process is faster than the best peer's fit alone in "
             f"{faster} of {len(tally)}.", "", READING.read_text().strip(), ""]
    text += ["## To F within 10⁻³", "", "Of obprox and of the peers the fastest fit whose F came out within 10⁻³ of the optimum, whatever "
             "tolerance; training is without reading the file and without the pass that states the problem (see above). Certified: training until the "
             "gap itself, which no peer but Celer looks at, is proved to be at most 10⁻³.", "",
             "| data | λ | obprox training | certified | obprox whole | best peer | its fit | training / fit |", "|---|---|---|---|---|---|---|---|"]
    ahead = []
    for name, of in sets.items():
        for label in LABELS:
            if not any(line.get("label") == label and "best" in line for line in of):
                continue
            own, proved, peer = roughly(of, label, 1e-3), ours(of, label, 1e-3), reached(of, label, 1e-3)
            row = [name, label, seconds(own["seconds"]), seconds(proved["seconds"]), seconds(own["whole"])]
            if peer:
                ratio = own["seconds"] / peer["seconds"]
                ahead.append(ratio <= 1)
                row += [peer["peer"], seconds(peer["seconds"]), f"{ratio:.2f}"]
            else:
                row += ["none got there", "–", "–"]
            text.append("| " + " | ".join(row) + " |")
    text += ["", f"No peer is ahead in {sum(ahead)} of {len(ahead)} cases."]
    text += ["", "## A path of 100 λ", "", "From λ_max down to λ_max/1000 (λ_max/100 where there are more columns than rows). Worst: the largest relative "
             "excess of F over obprox's along the path.", "", "| data | obprox whole | peer | its path | worst | ratio |", "|---|---|---|---|---|---|"]
    for name, of in sets.items():
        own = next((line for line in of if line.get("path") is True and line["peer"] == "obprox"), None)
        paths = [line for line in of if line.get("path") is True and line["peer"] != "obprox"]
        for line in sorted(paths, key=lambda line: line["seconds"]):
            text.append(f"| {name} | {seconds(own['whole'])} | {line['peer']} (tol {line['tol']:g}) | {seconds(line['seconds'])} | {line['worst']:.0e} "
                        f"| {own['whole'] / line['seconds']:.2f} |")
        if own and not paths:
            text.append(f"| {name} | {seconds(own['whole'])} | none finished | – | – | – |")
    text += ["", paths_in_short(sets)]
    text += ["", "## Every measurement of the peers", "", "Excess is F − F*, relative to F*; times of warm fits.", "",
             "| data | λ | peer | tolerance | seconds | excess |", "|---|---|---|---|---|---|"]
    for name, of in sets.items():
        for line in of:
            if "excess" in line and line["peer"] != "obprox":
                best = next(other["best"] for other in of if other.get("label") == line["label"] and "best" in other)
                text.append(f"| {name} | {line['label']} | {line['peer']} | {line['tol']:g} | {seconds(line['seconds'])} | {line['excess'] / best:.0e} |")
            elif "gave_up" in line:
                text.append(f"| {name} | {line['label']} | {line['peer']} | {(line['gave_up'] or [0, 0])[1]:g} | > {line['limit']:.0f} | gave up |")
            elif "failed" in line or "skipped" in line:
                why = line.get("skipped") or " ".join(line["failed"]) or "it failed"
                text.append(f"| {name} | – | {line['peer']} | – | – | {why.replace('|', '/')[:100]} |")
    text += builds()
    text += ["", "## Loading and first calls", "", "| data | rows × columns, nonzeros | load_svmlight_file | "
             + " | ".join(f"first call of {peer}" for peer in ["skglm", "Celer (no intercept)", "LIBLINEAR"]) + " |", "|---|---|---|---|---|---|"]
    for name, of in sets.items():
        shape = next(line for line in of if "rows" in line)
        first = {line["peer"]: line["first"] for line in of if "first" in line}
        cells = [seconds(first[peer]) if peer in first else "–" for peer in ["skglm", "Celer (no intercept)", "LIBLINEAR"]]
        loading = seconds(shape["loading"]) if shape["loading"] else "–"
        text.append(f"| {name} | {shape['rows']} × {shape['columns']}, {shape['nnz']} | {loading} | " + " | ".join(cells) + " |")
    text += ["", "## Excess of F against time", ""]
    for name in sets:
        text += [f"### {name}", "", f"![{name}](plots/{slug(name)}.svg)", ""]
    return "\n".join(text)


def builds():
    """The table of `builds.py`, where it was run."""
    kept = pathlib.Path(__file__).parent / "builds.json"
    if not kept.exists():
        return []
    cases = json.loads(kept.read_text())
    ratios = {case: of["new"] / of["old"] for case, of in cases.items()}
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    text = ["", "## Two builds", "", (kept.parent / "builds.head.md").read_text().strip(), "",
            "| data | λ | before | now | ratio |", "|---|---|---|---|---|"]
    for case, of in cases.items():
        data, label = case.rsplit(", ", 1)
        text.append(f"| {data} | {label} | {seconds(of['old'])} | {seconds(of['new'])} | {ratios[case]:.2f} |")
    return text + ["", f"Geometric mean of the {len(ratios)} ratios: {mean:.3f}; the largest is {max(ratios.values()):.2f}, "
                   f"{sum(ratio > 1.1 for ratio in ratios.values())} are above 1.1."]


def plot(name, of, path):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "obprox", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    import matplotlib.pyplot as plt

    labels = [label for label in LABELS if any(line.get("label") == label and "best" in line for line in of)]
    figure, axes = plt.subplots(1, len(labels), figsize=(3.2 * len(labels), 3.2), sharey=True, squeeze=False)
    peers = sorted({line["peer"] for line in of if "excess" in line and line["peer"] != "obprox"})
    colours = dict(zip(peers, plt.get_cmap("tab10").colors))
    for axis, label in zip(axes[0], labels):
        best = next(line["best"] for line in of if line.get("label") == label and "best" in line)
        for peer in peers + ["obprox"]:
            fits = [line for line in of if line.get("peer") == peer and line.get("label") == label and "excess" in line]
            points = sorted((line["whole"] if peer == "obprox" else line["seconds"], max(line["excess"] / best, 1e-12)) for line in fits)
            style = dict(color="black", lw=2, marker="o", ms=5, zorder=5) if peer == "obprox" else dict(color=colours[peer], lw=1, marker=".")
            if points:
                axis.plot(*zip(*points), label="obprox, whole process" if peer == "obprox" else peer, **style)
        axis.set(xscale="log", yscale="log", title=f"λ = {label.replace(' max', ' λ_max')}", xlabel="seconds")
        axis.grid(alpha=0.25)
    axes[0][0].set_ylabel("(F − F*) / F*")
    handles, names = {}, []
    for axis in axes[0]:
        for handle, label in zip(*axis.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=5, frameon=False)
    figure.suptitle(name)
    figure.tight_layout(rect=(0, 0.14, 1, 1))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
