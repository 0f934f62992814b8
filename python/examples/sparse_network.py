"""A PyTorch network that is mostly zeros: train it, look at it, ship it.

Runs in under a minute on generated images; with OBPROX_DATA set to a directory that holds fashion-mnist/*.gz it uses
6000 images of Fashion-MNIST instead. Cells are marked by `# %%`, so that an editor can run them one by one.
"""

# %% Images of four shapes under noise, or Fashion-MNIST.
import os

import fashion_mnist
import numpy as np
import torch
from torch.nn import functional as F

import obprox.net
from obprox.torch import OBProxSG, ProxSG, load_compressed, save_compressed, sparsity_report
from obprox.torch.nets import SmallCNN


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


if data := os.environ.get("OBPROX_DATA"):
    train, test = fashion_mnist.read(data, "train", 6000), fashion_mnist.read(data, "t10k", 2000)
else:
    train, test = shapes(1500, seed=1), shapes(1000, seed=2)
classes = int(train[1].max()) + 1

# %% The usual loop. Only the line that builds the optimizer knows of sparsity.
BATCH, EPOCHS = 50, 12
STEPS_PER_EPOCH = len(train[0]) // BATCH


def trained(build_optimizer):
    torch.manual_seed(0)
    model = SmallCNN(channels=1, classes=classes, width=0.25)
    optimizer = build_optimizer(model.parameters())
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[EPOCHS - 3], gamma=0.1)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(train[0])).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(model(train[0][rows]), train[1][rows]).backward()
            optimizer.step()
        scheduler.step()
    return model.eval()


def accuracy(scores):
    return (torch.as_tensor(scores).argmax(1) == test[1]).double().mean().item()


# %% Prox-SG and OBProx-SG+, which turns to Orthant steps after N_P = 6 epochs and stays with them.
LAMBDA = 4e-3
optimizers = {
    "SGD": lambda params: torch.optim.SGD(params, lr=0.1),
    "Prox-SG": lambda params: ProxSG(params, lr=0.1, lambda_=LAMBDA),
    "OBProx-SG+": lambda params: OBProxSG(
        params, lr=0.1, lambda_=LAMBDA, n_p=6, n_o=None, steps_per_epoch=STEPS_PER_EPOCH
    ),
}
print(f"{'method':12}{'accuracy':>9}{'density':>9}{'file':>13}")
for name, build_optimizer in optimizers.items():
    model = trained(build_optimizer)
    size = save_compressed(model, "network.obz")
    with torch.no_grad():
        score = accuracy(model(test[0]))
    print(f"{name:12}{score:9.1%}{sparsity_report(model).weights.density:9.1%}{size:7,} bytes")

# %% Where the weights are.
print()
print(sparsity_report(model))

# %% The file serves without PyTorch: the Rust engine skips the zeros.
network = obprox.net.read("network.obz")
with torch.no_grad():
    expected = model(test[0])
served = network.scores(test[0].numpy())
print()
print(f"{network}: accuracy {accuracy(served):.1%}, scores within {np.abs(served - expected.numpy()).max():.0e}")

# %% And goes back into PyTorch.
again = load_compressed("network.obz")
with torch.no_grad():
    torch.testing.assert_close(again(test[0]), expected)
os.remove("network.obz")
