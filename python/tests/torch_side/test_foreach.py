"""All tensors at once and one by one: the same weights, to the bit."""

import pytest
import torch

from obprox.torch import ProxSG

from .runs import METHODS, assert_same_bits, network, train, twins, weights_of


@pytest.mark.parametrize("name", METHODS)
def test_foreach_is_the_plain_loop(name):
    fast, plain = twins(name, 24, {}, {"foreach": False})
    assert_same_bits(fast, plain)
    assert any((param == 0).any() for param in fast.parameters())


def test_it_is_the_default():
    assert ProxSG(network().parameters()).param_groups[0]["foreach"] is True


def test_tensors_of_several_types_and_without_gradient():
    """One group may hold what no single call can take together; a tensor without gradient is left alone."""
    results = []
    for foreach in (True, False):
        torch.manual_seed(0)
        params = [torch.randn(3, 3, dtype=dtype, requires_grad=True) for dtype in (torch.float32, torch.float64) * 2]
        idle = torch.randn(2, 2, requires_grad=True)
        before = idle.detach().clone()
        optimizer = ProxSG([*params, idle], lr=0.1, lambda_=5.0, foreach=foreach)
        sum((param.double() ** 2).sum() for param in params).backward()
        optimizer.step()
        assert torch.equal(idle, before)
        results.append([param.detach() for param in params])
    for fast, plain in zip(*results):
        assert torch.equal(fast, plain) and (fast == 0).any()


def test_float32_too():
    models = [network(torch.float32), network(torch.float32)]
    before = weights_of(models[0])
    for model, foreach in zip(models, (True, False)):
        train(model, METHODS["obprox-sg"](model.parameters(), foreach=foreach), 24)
    assert_same_bits(*models)
    assert not torch.equal(models[0][0].weight, before[0])
