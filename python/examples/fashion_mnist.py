"""Fashion-MNIST from its original idx files, for the examples."""

import gzip
from pathlib import Path

import numpy as np
import torch


def read(data, part, count):
    """The first `count` images of a part ("train" or "t10k") at mean 0 and deviation 1, and their classes."""
    directory = Path(data) / "fashion-mnist"
    pixels = np.frombuffer(gzip.open(directory / f"{part}-images-idx3-ubyte.gz").read(), np.uint8, offset=16)
    labels = np.frombuffer(gzip.open(directory / f"{part}-labels-idx1-ubyte.gz").read(), np.uint8, offset=8)
    images = (torch.tensor(pixels.reshape(-1, 1, 28, 28)[:count]) / 255 - 0.286) / 0.353
    return images, torch.tensor(labels[:count], dtype=torch.long)
