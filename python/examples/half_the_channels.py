"""Half of a network's channels: train with AdamW until they are zero, cut them out, ship what is left.

Runs in under a minute on generated images, with a residual network written the way torchvision writes them. Any module
that torch.fx can trace does as well. Cells are marked by `# %%`, so that an editor can run them one by one.
"""

# %% Images of four shapes under noise.
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import obprox.net
from obprox.torch import HalfSpace, before_after, channel_groups, save_compressed, shrink


def shapes(count, seed):
    """Bars, crosses and rings of random place and size, in noise."""
    random = np.random.default_rng(seed)
    labels = random.integers(4, size=count)
    images = 0.5 * random.normal(size=(count, 1, 16, 16)).astype(np.float32)
    rows, columns = np.mgrid[:16, :16]
    for image, label in zip(images, labels):
        y, x, radius = random.integers(5, 11), random.integers(5, 11), random.integers(3, 6)
        across, along = np.abs(rows - y), np.abs(columns - x)
        lying = (across == 0) & (along <= radius)
        standing = (along == 0) & (across <= radius)
        ring = np.maximum(across, along) == radius
        image[0] += 1.5 * [lying, standing, lying | standing, ring][label]
    return torch.from_numpy(images), torch.from_numpy(labels)


train, test = shapes(1500, seed=1), shapes(1000, seed=2)


# %% The network: nothing in it knows of sparsity.
class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity() if (inputs, stride) == (outputs, 1) else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, 1, 1), nn.BatchNorm2d(16), nn.ReLU(),
    Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 4),
)  # fmt: skip

# %% The usual loop, and one line around the optimizer.
BATCH, EPOCHS = 50, 10
example = train[0][:2]
total_steps = EPOCHS * (len(train[0]) // BATCH)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
optimizer = HalfSpace(optimizer, model, example, target_group_sparsity=0.5, total_steps=total_steps)
for _ in range(EPOCHS):
    for rows in torch.randperm(len(train[0])).split(BATCH):
        optimizer.zero_grad()
        F.cross_entropy(model.train()(train[0][rows]), train[1][rows]).backward()
        optimizer.step()
model.eval()
print(f"{optimizer.group_sparsity:.1%} of {len(channel_groups(model, example))} groups of channels are zero")

# %% Cut them out: a plain module, smaller and dense.
small = shrink(model, example)


def accuracy(scores):
    return (torch.as_tensor(scores).argmax(1) == test[1]).double().mean().item()


with torch.no_grad():
    scores, again = model(test[0]), small(test[0])
print(before_after(model, small, test[0][:50]))
print(f"accuracy {accuracy(scores):.1%} → {accuracy(again):.1%}")
assert torch.allclose(scores, again, atol=1e-4), "the outputs are the same"

# %% Ship it: a file that obprox serves without PyTorch, and ONNX for any other runtime.
directory = tempfile.mkdtemp()
size = save_compressed(small, os.path.join(directory, "network.obz"), example=example)
network = obprox.net.read(os.path.join(directory, "network.obz"))
onnx = network.write_onnx(os.path.join(directory, "network.onnx"))
print(f"{size:,} bytes as .obz, {onnx:,} as ONNX; served: accuracy {accuracy(network.scores(test[0].numpy())):.1%}")
