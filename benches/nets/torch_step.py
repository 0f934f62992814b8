"""Images a second of whole training steps in PyTorch: forward, backward, and a step of SGD.

`torch_step.py NETWORK [WIDTH [STEPS [BATCH [CHANNELS SIDE [FORMAT [THREADS [DENSITY]]]]]]]`; ends with one line of JSON.
The networks are those of `crates/obprox-infer/src/architecture`. FORMAT is channels_last or contiguous_format, or
sparseprop: then all but DENSITY of each convolution's weights are zero, and that library replaces the layers that it makes
faster.
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


@torch.no_grad()
def sparse(net, shape, density, threads):
    """The network with zeros where `examples/throughput.rs` has them, and SparseProp's layers where they are faster."""
    import sparseprop
    from sparseprop.utils import swap_modules_with_sparse

    for param in net.parameters():
        if param.dim() == 4:
            places = torch.arange(param.numel(), dtype=torch.int64)
            kept = ((places * 2654435761) >> 7) % 10_000 < int(density * 10_000)
            param.mul_(kept.view_as(param))
    sparseprop.set_num_threads(threads)
    # It knows no groups.
    grouped = [name for name, layer in net.named_modules() if getattr(layer, "groups", 1) > 1]
    with torch.enable_grad():
        return swap_modules_with_sparse(net, shape, inplace=True, skip_modules=",".join(grouped) or None)


def main():
    words = sys.argv[1:] + ["small-cnn", "1", "5", "128", "3", "32", "channels_last", "2", "0.03"][len(sys.argv) - 1 :]
    name, width, steps, batch, channels, side, layout = words[0], float(words[1]), *map(int, words[2:6]), words[6]
    threads, density = int(words[7]), float(words[8])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    net = network(name, width, channels)
    if layout == "sparseprop":
        net, layout = sparse(net, (batch, channels, side, side), density, threads), torch.contiguous_format
    else:
        layout = getattr(torch, layout)
    net = net.to(memory_format=layout).train()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    images = torch.rand(batch, channels, side, side).sub(0.5).to(memory_format=layout)
    labels = torch.arange(batch) % 10
    best = float("inf")
    for number in range(steps + 2):
        if number == 2:
            before = time.process_time()
        begun = time.perf_counter()
        optimizer.zero_grad()
        F.cross_entropy(net(images), labels).backward()
        optimizer.step()
        best = min(best, time.perf_counter() - begun)
    processor = (time.process_time() - before) / steps
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) / 1e3 for line in status if line.startswith("VmHWM"))
    rates = {"images_per_second": round(batch / best, 2), "per_processor_second": round(batch / processor, 2)}
    print(json.dumps({**rates, "peak_mb": round(peak, 1)}))


main()
