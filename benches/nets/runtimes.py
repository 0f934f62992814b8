#!/usr/bin/env python3
"""Sparse predictions beside dense ones by onnxruntime: images a second, in two steps.

`runtimes.py write DIR` needs torch and torchvision: it writes torchvision's networks with random weights as ONNX, of which a
share is left in random places. Depthwise convolutions and the last layer stay dense, as training leaves them.
`runtimes.py race DIR` needs onnxruntime and `cargo build --release -p obprox-infer --example predictions`: both get the very
file, and two threads; they take turns, and the fastest of each counts. Prints the table of benches/NETS.md.
"""

import argparse
import json
import os
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
OURS = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/examples/predictions"

numbers = lambda kind: lambda text: [kind(part) for part in text.split(",")]
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("what", choices=["write", "race"])
parser.add_argument("directory", type=Path)
parser.add_argument("--networks", type=numbers(str), default=["resnet18", "resnet50", "mobilenet_v2"])
parser.add_argument("--densities", type=numbers(float), default=[0.02, 0.05, 0.1, 0.2])
parser.add_argument("--batches", type=numbers(int), default=[1, 64])
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--rounds", type=int, default=3)
options = parser.parse_args()
SIDE = 224


def write(name, density, path):
    import torch
    import torchvision

    torch.manual_seed(0)
    model = getattr(torchvision.models, name)()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.Conv2d) and module.groups == 1:
                module.weight.mul_((torch.rand(module.weight.shape) < density) / density**0.5)
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
        cells = " | ".join(f"{rate:.1f}" for rate in best.values())
        print(f"| {name} | {density:.0%} | {batch} | {cells} | {best['chosen'] / best['onnxruntime']:.2f}× |", flush=True)


if options.what == "race":
    print("| network | density | batch | onnxruntime, images/s | obprox, all weights | obprox | of onnxruntime |")
    print("|---|---|---|---|---|---|---|")
options.directory.mkdir(parents=True, exist_ok=True)
for name in options.networks:
    for density in options.densities:
        path = options.directory / f"{name}-{density}.onnx"
        (write if options.what == "write" else race)(name, density, path)
