"""Serve sparse networks without PyTorch: what ``obprox net compress`` and ``obprox.torch.save_compressed`` wrote.

The engine skips zeros, leaves out channels that cannot reach the output, and chooses for every layer between sparse and
dense kernels.
"""

from __future__ import annotations

import os
from typing import Any, List, NamedTuple, Optional, Tuple

import numpy as np

from . import _core
from .exceptions import DataError

__all__ = ["Architecture", "Network", "Preprocessing", "read", "read_onnx"]


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
    def architecture(self) -> Optional[Architecture]:
        """Which network it is; None where it is none that is known by name."""
        architecture = self._core.architecture
        return None if architecture is None else Architecture(*architecture)

    @property
    def input_shape(self) -> Tuple[int, ...]:
        """The shape of an input, without the batch; images may come in other sizes, as far as the layers allow."""
        return tuple(self._core.input_shape)

    @property
    def output_shape(self) -> Tuple[int, ...]:
        """The shape of what comes out of such an input, without the batch."""
        return tuple(self._core.output_shape)

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
        images : array-like of shape (count, channels, height, width), or (count, length) where the network takes vectors
            Floats are taken as they are: prepared as those that the network was trained on. Bytes (``uint8``) are
            resized and normalised as the file says.
        n_jobs : int, optional
            Number of threads; None and -1 take every core.

        Returns
        -------
        ndarray of shape (count, classes), float32; of a network that gives images, (count, channels, height, width)
        """
        images = np.asarray(images)
        if images.ndim != 1 + len(self.input_shape):
            asked = "(count, channels, height, width)" if len(self.input_shape) == 3 else "(count, length)"
            raise DataError(f"images must have the shape {asked}, not {images.shape}")
        threads = 0 if n_jobs is None or n_jobs < 0 else n_jobs
        if images.dtype == np.uint8:
            images = self._core.prepared(images, threads)
        return self._core.scores(images.astype(np.float32, copy=False), threads)

    def predict(self, images: Any, *, n_jobs: Optional[int] = None) -> np.ndarray:
        """The class of every image: its label, or its number where classes have no labels."""
        scores = self.scores(images, n_jobs=n_jobs)
        classes = self.output_shape[0]
        if scores.size != len(scores) * classes:
            raise DataError(f"the network gives {scores.shape[1:]} numbers an image, and no scores of classes")
        best = scores.reshape(len(scores), classes).argmax(axis=1)
        return np.array(self.labels)[best] if self.labels else best

    def rounded(self, values: str) -> "Network":
        """The same network with its weights rounded, so that its file is smaller and what that costs can be measured.

        Parameters
        ----------
        values : {"f32", "bf16", "int8"}
            Not at all, to bfloat16, or to whole numbers from −127 to 127 of a scale for each channel. Biases and
            normalisations stay as they are.
        """
        return Network(self._core.rounded(values))

    def write(self, path: "os.PathLike[str] | str") -> int:
        """Writes it as a compressed file, every value to the bit; the size in bytes."""
        return self._core.write(path)

    def write_onnx(self, path: "os.PathLike[str] | str", *, keep_channels: bool = False) -> int:
        """Writes it as ONNX, for any runtime, with the channels cut out that cannot change its output; the size in bytes."""
        return (self._core if keep_channels else self._core.cut()).write_onnx(path)

    def __repr__(self) -> str:
        return f"Network({self._core!r})"


def read(path: "os.PathLike[str] | str") -> Network:
    """Reads a compressed network (``.obz``) or a safetensors file, told by content.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    Network
        The network, ready to predict.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import obprox.net
    >>> from obprox.torch import nets, save_compressed  # the file may as well come from `obprox net compress`
    >>> path = os.path.join(tempfile.mkdtemp(), "network.obz")
    >>> size = save_compressed(nets.SmallCNN(channels=1, classes=3, width=0.25), path)
    >>> network = obprox.net.read(path)
    >>> network.architecture.kind
    'small-cnn'
    >>> network.scores(np.zeros((5, 1, 28, 28))).shape
    (5, 3)
    """
    return Network(_core.Network.read(path))


def read_onnx(path: "os.PathLike[str] | str", *, size: Optional[Tuple[int, int]] = None) -> Network:
    """Reads an ONNX file. What cannot be computed here is refused by the name of the operation.

    Parameters
    ----------
    path : path-like
        The file.
    size : (height, width), optional
        The size of the images, where the file leaves it open.

    Returns
    -------
    Network
        The network, ready to predict.
    """
    return Network(_core.Network.read_onnx(path, size))
