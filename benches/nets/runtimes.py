#!/usr/bin/env python3
"""Sparse predictions beside dense ones by onnxruntime: images a second, the whole table by one command.

`runtimes.py DIR` needs onnxruntime and cargo, and for the networks that are not in DIR yet a Python with torch and torchvision
(`--torch`). The networks are torchvision's with random weights as ONNX, of which a share is left in random places. Depthwise
convolutions and the last layer stay dense, as training leaves them. Both sides get the very file, and two threads; they take
turns, and the fastest of each counts. tract is measured too where its Python package is there: once for all densities, since
it multiplies zeros as well, and on one thread, which is how it works. Prints the table of benches/NETS.md.
"""

import argparse
import functools
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/examples/predictions"

numbers = lambda kind: lambda text: [kind(part) for part in text.split(",")]
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("directory", type=Path)
parser.add_argument("--torch", default=sys.executable, metavar="PYTHON", help="what writes the networks")
parser.add_argument("--networks", type=numbers(str), default=["resnet18", "resnet50", "mobilenet_v2"])
parser.add_argument("--densities", type=numbers(float), default=[0.02, 0.05, 0.1, 0.2])
parser.add_argument("--batches", type=numbers(int), default=[1, 64])
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--write", action="store_true", help="write the networks, and measure nothing")
options = parser.parse_args()
SIDE = 224
TRACT = importlib.util.find_spec("tract") is not None


def write(name, density, path):
    import torch
    import torchvision

    torch.manual_seed(0)
    model = getattr(torchvision.models, name)()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.Conv2d) and module.groups == 1:
                gone = torch.rand(module.weight.shape) >= density
                # Not by a factor of zero, which makes some of them −0.
                module.weight.div_(density**0.5).masked_fill_(gone, 0)
        # Normalisations that keep the outputs in bounds.
        model.train()(torch.randn(8, 3, SIDE, SIDE))
        names = dict(input_names=["images"], output_names=["scores"])
        axes = {"images": {0: "count"}, "scores": {0: "count"}}
        torch.onnx.export(model.eval(), torch.randn(1, 3, SIDE, SIDE), str(path), dynamic_axes=axes, **names)


def session(path):
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    return onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])


def theirs(session, batch, repeats):
    import numpy as np

    images = np.full((batch, 3, SIDE, SIDE), 0.5, np.float32)
    least = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        session.run(None, {"images": images})
        least = min(least, time.perf_counter() - start)
    return batch / least


@functools.lru_cache(maxsize=None)
def tract_rate(name, batch):
    """Images a second of tract with the first file of a network."""
    import numpy as np
    import tract

    network = tract.onnx().load(str(options.directory / f"{name}-{options.densities[0]}.onnx"))
    network.set_input_fact(0, f"{batch},3,{SIDE},{SIDE},f32")
    runnable = network.into_model().into_runnable()
    images = np.full((batch, 3, SIDE, SIDE), 0.5, np.float32)
    least = float("inf")
    for _ in range(options.rounds):
        start = time.perf_counter()
        runnable.run([images])
        least = min(least, time.perf_counter() - start)
    return batch / least


def ours(path, batch, repeats):
    command = [str(word) for word in (OURS, path, batch, repeats)]
    threads = {**os.environ, "RAYON_NUM_THREADS": str(options.threads)}
    return json.loads(subprocess.run(command, capture_output=True, text=True, env=threads, check=True).stdout)


def race(name, density, path):
    dense = session(path)
    for batch in options.batches:
        repeats = 20 if batch == 1 else 2
        best = {"onnxruntime": 0, "dense": 0, "chosen": 0}
        for _ in range(options.rounds):
            rates = {"onnxruntime": theirs(dense, batch, repeats), **ours(path, batch, repeats)}
            best = {side: max(rate, rates[side]) for side, rate in best.items()}
        if TRACT:
            best = {"tract": tract_rate(name, batch), **best}
        cells = " | ".join(f"{rate:.1f}" for rate in best.values())
        print(f"| {name} | {density:.0%} | {batch} | {cells} | {best['chosen'] / best['onnxruntime']:.2f}× |", flush=True)


def main():
    cases = [(name, density) for name in options.networks for density in options.densities]
    paths = {case: options.directory / "{}-{}.onnx".format(*case) for case in cases}
    options.directory.mkdir(parents=True, exist_ok=True)
    if options.write:
        for (name, density), path in paths.items():
            if not path.exists():
                write(name, density, path)
        return
    if not all(path.exists() for path in paths.values()):
        subprocess.run([options.torch, __file__, *sys.argv[1:], "--write"], check=True)
    build = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "obprox-infer", "--example", "predictions"]
    subprocess.run(build, cwd=ROOT, check=True)
    tract = " tract, images/s |" if TRACT else ""
    print(f"| network | density | batch |{tract} onnxruntime, images/s | obprox, all weights | obprox | of onnxruntime |")
    print("|---" * (8 if TRACT else 7) + "|")
    for (name, density), path in paths.items():
        race(name, density, path)


main()
