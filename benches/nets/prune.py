"""What a PyTorch user would do instead: one network trained densely, pruned gradually, or by obprox.torch.

    python benches/nets/prune.py DATA --method gmp --density 0.05 --seed 0

Everything but the method is the same: network, images, batches, mirrored batches, epochs, warm-up and a cosine to zero,
SGD with momentum. Prints one JSON object; its time is the processor's, training alone. DATA is a directory of Fashion-MNIST's idx files or CIFAR-10's binary ones.
"""

import argparse
import gzip
import json
import lzma
import math
import pathlib
import time

import numpy as np
import torch
from torch.nn import functional as F

from obprox.torch import OBProxSG, nets, sparsity_report


def opened(path):
    """The bytes of a file, compressed or not."""
    for ending, read in (("", pathlib.Path.read_bytes), (".gz", gzip.open), (".xz", lzma.open)):
        found = path.with_name(path.name + ending)
        if found.exists():
            return read(found) if not ending else read(found).read()
    raise SystemExit(f"{path}: not there, neither plain nor compressed")


def images(root):
    """Training images, their classes, test images, their classes; as bytes."""
    if list(root.glob("train-images-idx3*")):
        parts = []
        for part in ("train", "t10k"):
            pixels = np.frombuffer(opened(root / f"{part}-images-idx3-ubyte"), np.uint8, offset=16)
            parts += [pixels.reshape(-1, 1, 28, 28), np.frombuffer(opened(root / f"{part}-labels-idx1-ubyte"), np.uint8, offset=8)]
        return parts, ([0.2860], [0.3530])
    rows = [opened(root / f"data_batch_{number}.bin") for number in range(1, 6)], [opened(root / "test_batch.bin")]
    parts = []
    for files in rows:
        all_rows = np.frombuffer(b"".join(files), np.uint8).reshape(-1, 3073)
        parts += [all_rows[:, 1:].reshape(-1, 3, 32, 32), all_rows[:, 0]]
    return parts, ([0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616])


def prepared(pixels, moments):
    mean, std = (torch.tensor(values).view(1, -1, 1, 1) for values in moments)
    return (torch.from_numpy(pixels.copy()).float() / 255 - mean) / std


class Gradual:
    """Gradual magnitude pruning (Zhu and Gupta, 2017), global, cubic, until three quarters of the steps."""

    def __init__(self, weights, density, steps):
        self.weights, self.density, self.end = weights, density, 0.75 * steps
        self.masks = [torch.ones_like(weight) for weight in weights]

    @torch.no_grad()
    def after(self, step):
        if step <= self.end + 1 and (step % 8 == 0 or step >= self.end):
            left = max(0.0, 1 - step / self.end)
            keep = int((self.density + (1 - self.density) * left**3) * sum(weight.numel() for weight in self.weights))
            least = torch.cat([weight.abs().flatten() for weight in self.weights]).topk(keep).values[-1]
            for weight, mask in zip(self.weights, self.masks):
                mask.mul_(weight.abs() >= least)
        for weight, mask in zip(self.weights, self.masks):
            weight.mul_(mask)


class State:
    """What a run that is broken off goes on from: a file that is written after each epoch."""

    def __init__(self, path, model, optimizer, scheduler, pruning):
        self.path, self.pruning = path, pruning
        self.parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}

    def read(self):
        """Epochs and steps that are done, and the processor time they took."""
        if not self.path or not self.path.exists():
            return 0, 0, 0.0
        saved = torch.load(self.path)
        for name, part in self.parts.items():
            part.load_state_dict(saved[name])
        if self.pruning:
            self.pruning.masks = saved["masks"]
        torch.set_rng_state(saved["rng"])
        return saved["epochs"], saved["steps"], saved["seconds"]

    def write(self, epochs, steps, seconds):
        if not self.path:
            return
        saved = {name: part.state_dict() for name, part in self.parts.items()}
        saved.update(rng=torch.get_rng_state(), epochs=epochs, steps=steps, seconds=seconds)
        saved["masks"] = self.pruning and self.pruning.masks
        partial = self.path.with_suffix(".partial")
        torch.save(saved, partial)
        partial.replace(self.path)


def trained(options):
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    (train, labels, test, wanted), moments = images(options.data)
    if options.limit:
        train, labels = train[: options.limit], labels[: options.limit]
    train, test = prepared(train, moments), prepared(test, moments)
    labels, wanted = (torch.from_numpy(values.astype(np.int64)) for values in (labels, wanted))
    kind = {"small-cnn": nets.SmallCNN, "resnet18": nets.ResNet18, "mobilenet-v1": nets.MobileNetV1}[options.model]
    model = kind(train.shape[1], 10, options.width).to(memory_format=torch.channels_last)
    per_epoch = math.ceil(len(train) / options.batch)
    steps, up = options.epochs * per_epoch, options.warmup * per_epoch
    weights = [param for param in model.parameters() if param.dim() >= 2]
    pruning = Gradual(weights, options.density, steps) if options.method == "gmp" else None
    if options.method == "obprox":
        optimizer = OBProxSG(
            model.parameters(), lr=options.lr, momentum=0.9, weight_decay=options.decay, n_p=0, n_o=None,
            steps_per_epoch=per_epoch, target_density=options.density, total_steps=steps,
        )  # fmt: skip
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9, weight_decay=options.decay)

    def share(step):
        if step < up:
            return (step + 1) / (up + 1)
        return 0.5 * (1 + math.cos(math.pi * (step - up) / (steps - up)))

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, share)
    state = State(options.state, model, optimizer, scheduler, pruning)
    first, step, spent = state.read()
    begun = time.process_time()
    for epoch in range(first, options.epochs):
        model.train()
        for rows in torch.randperm(len(train)).split(options.batch):
            batch = train[rows]
            if torch.rand(()) < 0.5:
                batch = batch.flip(3)
            optimizer.zero_grad()
            F.cross_entropy(model(batch.contiguous(memory_format=torch.channels_last)), labels[rows]).backward()
            optimizer.step()
            scheduler.step()
            step += 1
            if pruning:
                pruning.after(step)
        state.write(epoch + 1, step, spent + time.process_time() - begun)
    seconds = spent + time.process_time() - begun
    model.eval()
    with torch.no_grad():
        right = sum(
            int((model(part.contiguous(memory_format=torch.channels_last)).argmax(1) == classes).sum())
            for part, classes in zip(test.split(500), wanted.split(500))
        )
    return {"accuracy": right / len(test), "density": sparsity_report(model).weights.density, "processor_seconds": seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--method", choices=["dense", "gmp", "obprox"], required=True)
    parser.add_argument("--model", default="small-cnn")
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--density", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--warmup", type=float, default=0.5, help="epochs")
    parser.add_argument("--decay", type=float, default=5e-4, help="of SGD; obprox takes it implicitly, 5e-3 is alike")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--state", type=pathlib.Path, help="kept here after each epoch, and gone on from")
    options = parser.parse_args()
    told = {name: str(value) if name == "data" else value for name, value in vars(options).items() if name != "state"}
    print(json.dumps({**told, **trained(options)}), flush=True)


if __name__ == "__main__":
    main()
