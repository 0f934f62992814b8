"""Serve sparse networks without PyTorch: what ``obprox net compress`` and ``obprox.torch.save_compressed`` wrote.

The engine skips zeros, leaves out channels that cannot reach the output, and chooses for every layer between sparse and
dense kernels.
"""

from __future__ import annotations

import os
from typing import Any, List, NamedTuple, Optional

import numpy as np

from . import _core
from .exceptions import DataError

__all__ = ["Architecture", "Network", "Preprocessing", "read"]


class Architecture(NamedTuple):
    """Which network it is."""

    #: "resnet18", "mobilenet-v1" or "small-cnn".
    kind: str
    #: Channels of the first convolution.
    base: int
    #: Channels relative to the network of width 1.
    width: float
    #: Channels of the images.
    channels: int
    #: Number of classes.
    classes: int


class Preprocessing(NamedTuple):
    """How images are prepared: resized, then (x/255 − mean)/std in each channel."""

    height: int
    width: int
    mean: List[float]
    std: List[float]


class Network:
    """A network that predicts; :func:`read` makes one of a file."""

    def __init__(self, core: _core.Network) -> None:
        self._core = core

    @property
    def architecture(self) -> Architecture:
        """Which network it is."""
        return Architecture(*self._core.architecture)

    @property
    def preprocessing(self) -> Optional[Preprocessing]:
        """How its images are prepared, where the file tells."""
        preprocessing = self._core.preprocessing
        return None if preprocessing is None else Preprocessing(*preprocessing)

    @property
    def labels(self) -> List[str]:
        """The names of the classes; empty where they are just numbered."""
        return self._core.labels

    def tensors(self) -> dict:
        """The parameters as arrays, by PyTorch's names."""
        return self._core.tensors()

    def scores(self, images: Any, *, n_jobs: Optional[int] = None) -> np.ndarray:
        """The score of every class for every image.

        Parameters
        ----------
        images : array-like of shape (count, channels, height, width)
            Floats are taken as they are: prepared as those that the network was trained on. Bytes (``uint8``) are
            resized and normalised as the file says.
        n_jobs : int, optional
            Number of threads; None and -1 take every core.

        Returns
        -------
        ndarray of shape (count, classes), float32
        """
        images = np.asarray(images)
        if images.ndim != 4:
            raise DataError(f"images must have the shape (count, channels, height, width), not {images.shape}")
        threads = 0 if n_jobs is None or n_jobs < 0 else n_jobs
        if images.dtype == np.uint8:
            images = self._core.prepared(images, threads)
        return self._core.scores(images.astype(np.float32, copy=False), threads)

    def predict(self, images: Any, *, n_jobs: Optional[int] = None) -> np.ndarray:
        """The class of every image: its label, or its number where classes have no labels."""
        best = self.scores(images, n_jobs=n_jobs).argmax(axis=1)
        return np.array(self.labels)[best] if self.labels else best

    def __repr__(self) -> str:
        return f"Network({self._core!r})"


def read(path: "os.PathLike[str] | str") -> Network:
    """Reads a compressed network (``.obz``) or a safetensors file, told by content."""
    return Network(_core.Network.read(path))
