"""The networks that the `obprox` command trains and serves, in PyTorch, parameter name by parameter name.

All are for small images, about 32×32. A network trained here and written by :func:`obprox.torch.save_compressed` is
evaluated and served by ``obprox net`` and by :class:`obprox.net.Network`; one of your own is too, where its layers and
names are these.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class SmallCNN(nn.Module):
    """Three 3×3 convolutions of 32, 64 and 128 channels at width 1, with max pools between: for quick starts."""

    def __init__(self, channels: int = 3, classes: int = 10, width: float = 1.0) -> None:
        super().__init__()
        base = _scaled(32, width)
        self.conv1, self.bn1 = _conv_norm(channels, base, 3)
        self.conv2, self.bn2 = _conv_norm(base, 2 * base, 3)
        self.conv3, self.bn3 = _conv_norm(2 * base, 4 * base, 3)
        self.fc = nn.Linear(4 * base, classes)

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes."""
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(_pooled(F.relu(self.bn3(self.conv3(x)))))


class ResNet18(nn.Module):
    """ResNet18 (He et al., 2016) with a 3×3 stem of stride 1 and no max pool; torchvision's parameter names."""

    def __init__(self, channels: int = 3, classes: int = 10, width: float = 1.0) -> None:
        super().__init__()
        base = _scaled(64, width)
        self.conv1, self.bn1 = _conv_norm(channels, base, 3)
        self.layer1 = _stage(base, base, 1)
        self.layer2 = _stage(base, 2 * base, 2)
        self.layer3 = _stage(2 * base, 4 * base, 2)
        self.layer4 = _stage(4 * base, 8 * base, 2)
        self.fc = nn.Linear(8 * base, classes)

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes."""
        x = F.relu(self.bn1(self.conv1(x)))
        return self.fc(_pooled(self.layer4(self.layer3(self.layer2(self.layer1(x))))))


class MobileNetV1(nn.Module):
    """MobileNetV1 (Howard et al., 2017), stem of stride 1: 13 blocks of a depthwise and a pointwise convolution."""

    #: Output channels of each block as multiples of the stem's, and its stride.
    BLOCKS = ((2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (16, 2), *[(16, 1)] * 5, (32, 2), (32, 1))

    def __init__(self, channels: int = 3, classes: int = 10, width: float = 1.0) -> None:
        super().__init__()
        base = _scaled(32, width)
        self.conv1, self.bn1 = _conv_norm(channels, base, 3)
        inputs, blocks = base, []
        for multiple, stride in self.BLOCKS:
            blocks.append(_Separable(inputs, base * multiple, stride))
            inputs = base * multiple
        self.layers = nn.Sequential(*blocks)
        self.linear = nn.Linear(inputs, classes)

    def forward(self, x: Tensor) -> Tensor:
        """The scores of the classes."""
        return self.linear(_pooled(self.layers(F.relu(self.bn1(self.conv1(x))))))


class _Basic(nn.Module):
    """Two 3×3 convolutions and a way around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _conv_norm(inputs, outputs, 3, stride)
        self.conv2, self.bn2 = _conv_norm(outputs, outputs, 3)
        self.downsample = nn.Sequential(*_conv_norm(inputs, outputs, 1, stride)) if stride > 1 else None

    def forward(self, x: Tensor) -> Tensor:
        around = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(x)) + around)


class _Separable(nn.Module):
    """A convolution of each channel by itself, and one that mixes the channels."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _conv_norm(inputs, inputs, 3, stride, groups=inputs)
        self.conv2, self.bn2 = _conv_norm(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(x)))


def _stage(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    return nn.Sequential(_Basic(inputs, outputs, stride), _Basic(outputs, outputs, 1))


def _conv_norm(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1):
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return conv, nn.BatchNorm2d(outputs)


def _pooled(x: Tensor) -> Tensor:
    return torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)


def _scaled(base: int, width: float) -> int:
    return max(1, int(base * width + 0.5))
