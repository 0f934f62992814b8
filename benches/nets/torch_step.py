"""Images a second of whole training steps in PyTorch: forward, backward, and a step of SGD.

`torch_step.py NETWORK [WIDTH [STEPS [BATCH [CHANNELS SIDE [FORMAT]]]]]`; prints one line of JSON.
The networks are those of `crates/obprox-infer/src/architecture`.
"""

import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


def conv(inputs, outputs, kernel=3, stride=1, groups=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)


class Basic(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = conv(inputs, outputs, stride=stride), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = conv(outputs, outputs), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride > 1:
            self.downsample = nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class Means(nn.Module):
    def forward(self, x):
        return F.adaptive_avg_pool2d(x, 1).flatten(1)


def unit(*layers):
    return [*layers, nn.ReLU(inplace=True)]


def network(name, width, channels):
    base = max(1, round((64 if name == "resnet18" else 32) * width))
    if name == "small-cnn":
        layers, inputs = [], channels
        for number, outputs in enumerate([base, 2 * base, 4 * base]):
            layers += unit(conv(inputs, outputs), nn.BatchNorm2d(outputs))
            layers += [nn.MaxPool2d(2)] if number < 2 else []
            inputs = outputs
        return nn.Sequential(*layers, Means(), nn.Linear(inputs, 10))
    layers = unit(conv(channels, base), nn.BatchNorm2d(base))
    if name == "resnet18":
        inputs = base
        for stage in range(4):
            for block in range(2):
                outputs = base << stage
                layers.append(Basic(inputs, outputs, 2 if stage > 0 and block == 0 else 1))
                inputs = outputs
        return nn.Sequential(*layers, Means(), nn.Linear(inputs, 10))
    inputs = base
    for multiple, stride in [(2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (16, 2)] + 5 * [(16, 1)] + [(32, 2), (32, 1)]:
        layers += unit(conv(inputs, inputs, stride=stride, groups=inputs), nn.BatchNorm2d(inputs))
        layers += unit(conv(inputs, base * multiple, 1), nn.BatchNorm2d(base * multiple))
        inputs = base * multiple
    return nn.Sequential(*layers, Means(), nn.Linear(inputs, 10))


def main():
    words = sys.argv[1:] + ["small-cnn", "1", "5", "128", "3", "32", "channels_last"][len(sys.argv) - 1 :]
    name, width, steps, batch, channels, side, layout = words[0], float(words[1]), *map(int, words[2:6]), words[6]
    torch.set_num_threads(2)
    torch.manual_seed(0)
    layout = getattr(torch, layout)
    net = network(name, width, channels).to(memory_format=layout).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    images = torch.rand(batch, channels, side, side).sub(0.5).to(memory_format=layout)
    labels = torch.arange(batch) % 10
    best = float("inf")
    for _ in range(steps + 2):
        begun = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        optimizer.step()
        best = min(best, time.perf_counter() - begun)
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) / 1e3 for line in status if line.startswith("VmHWM"))
    print(json.dumps({"images_per_second": round(batch / best, 2), "peak_mb": round(peak, 1)}))


main()
