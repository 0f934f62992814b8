"""Small training runs that the tests share."""

import copy
import math

import torch

from obprox.torch import RDA, OBProxSG, ProxSG, ProxSVRG

# Tensors of a few entries: more threads would only wait for each other.
torch.set_num_threads(1)

#: Every method, with settings under which a few steps already make zeros.
METHODS = {
    "prox-sg": lambda params, **options: ProxSG(params, lr=0.1, lambda_=0.05, **options),
    "momentum": lambda params, **options: ProxSG(params, lr=0.05, lambda_=0.05, momentum=0.9, **options),
    "nesterov": lambda params, **options: ProxSG(
        params, lr=0.05, lambda_=0.05, momentum=0.9, nesterov=True, weight_decay=0.1, **options
    ),
    "obprox-sg": lambda params, **options: OBProxSG(
        params, lr=0.1, lambda_=0.05, n_p=2, n_o=3, steps_per_epoch=2, **options
    ),
    "obprox-sg+": lambda params, **options: OBProxSG(
        params, lr=0.1, lambda_=0.05, n_p=3, n_o=None, steps_per_epoch=None, momentum=0.5, weight_decay=0.2, **options
    ),
    "rda": lambda params, **options: RDA(params, gamma=2.0, lambda_=0.05, **options),
    "prox-svrg": lambda params, **options: ProxSVRG(params, lr=0.1, lambda_=0.05, **options),
}

EPOCH = 4


def network(dtype=torch.float64):
    """A network with a convolution, a normalisation, dropout and two linear layers."""
    torch.manual_seed(1)
    layers = [
        torch.nn.Conv2d(1, 4, 3, bias=False),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.2),
        torch.nn.Linear(64, 8),
        torch.nn.Tanh(),
        torch.nn.Linear(8, 3),
    ]
    return torch.nn.Sequential(*layers).to(dtype)


def train(model, optimizer, steps, start=0, scheduler=None):
    """Takes steps start, …, start + steps − 1 of a run whose batches and random numbers depend on the step alone."""
    dtype = next(model.parameters()).dtype

    def gradient_of(seed):
        def closure():
            generator = torch.Generator().manual_seed(seed)
            images = torch.randn(16, 1, 6, 6, generator=generator, dtype=dtype)
            targets = torch.randint(3, (16,), generator=generator)
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), targets)
            loss.backward()
            return loss

        return closure

    for step in range(start, start + steps):
        torch.manual_seed(1000 + step)
        if isinstance(optimizer, ProxSVRG) and step % EPOCH == 0:
            optimizer.anchor(gradient_of(10_000 + step))
        loss = optimizer.step(gradient_of(step))
        assert math.isfinite(loss.item())
        if (step + 1) % EPOCH == 0:
            if isinstance(optimizer, OBProxSG) and optimizer.param_groups[0]["steps_per_epoch"] is None:
                optimizer.epoch_end()
            if scheduler is not None:
                scheduler.step()


def twins(name, steps, first, second):
    """Trains two copies of one network with a method and two sets of options, and returns both."""
    models = [network(), network()]
    for model, options in zip(models, (first, second)):
        train(model, METHODS[name](model.parameters(), **options), steps)
    return models


def assert_same_bits(one, other):
    """Two modules hold the same values, to the bit."""
    for (name, a), b in zip(one.state_dict().items(), other.state_dict().values()):
        assert torch.equal(a, b), name


def weights_of(model):
    """A copy of the parameters."""
    return copy.deepcopy([param.detach() for param in model.parameters()])
