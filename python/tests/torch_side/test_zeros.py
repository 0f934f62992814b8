"""Zeros are exact, stay where they must, and are never made of NaN."""

import math

import pytest
import torch

from obprox.torch import RDA, OBProxSG, ProxSG

from .runs import METHODS, network, train


def one_step(optimizer, weight, gradient):
    weight.grad = gradient
    optimizer.step()
    return weight.detach()


@pytest.mark.parametrize("foreach", [True, False])
def test_orthant_steps_keep_zeros_zero_and_signs(foreach):
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(50, 40))
    with torch.no_grad():
        weight[weight.abs() < 0.5] = 0
    options = dict(n_p=0, n_o=None, steps_per_epoch=1, momentum=0.9, foreach=foreach)
    optimizer = OBProxSG([weight], lr=0.5, lambda_=0.01, **options)
    for _ in range(10):
        before = weight.detach().clone()
        after = one_step(optimizer, weight, 10 * torch.randn(50, 40))
        assert (after[before == 0] == 0).all()
        assert (after * before >= 0).all()
        assert not torch.signbit(after[after == 0]).any()
    assert 0 < (after != 0).sum() < (before != 0).sum()


@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize(
    "build",
    [
        lambda params, **options: ProxSG(params, **options),
        lambda params, **options: OBProxSG(params, n_p=0, n_o=None, steps_per_epoch=1, **options),
        lambda params, **options: RDA(params, gamma=1.0, **options),
    ],
)
def test_nan_is_never_a_zero(build, foreach):
    weight = torch.nn.Parameter(torch.tensor([[1.0, math.nan, 1e-9], [1.0, -1.0, 1.0]]))
    optimizer = build([weight], lambda_=0.5, foreach=foreach)
    after = one_step(optimizer, weight, torch.tensor([[math.nan, 0.0, 0.0], [0.0, math.nan, 0.0]]))
    assert after.isnan().tolist() == [[True, True, False], [False, True, False]]


def test_a_zero_in_the_orthant_phase_outlives_a_bad_gradient():
    weight = torch.nn.Parameter(torch.zeros(1, 3))
    optimizer = OBProxSG([weight], n_p=0, n_o=None, steps_per_epoch=1)
    assert torch.equal(one_step(optimizer, weight, torch.tensor([[math.nan, math.inf, 1.0]])), torch.zeros(1, 3))


@pytest.mark.parametrize("name", METHODS)
def test_vectors_are_not_penalised_unless_asked(name):
    model = network()
    start = {key: param.detach().clone() for key, param in model.named_parameters()}
    train(model, METHODS[name](model.parameters()), 24)
    for key, param in model.named_parameters():
        assert not torch.equal(param, start[key]), key
        assert (param == 0).any() == (param.dim() >= 2), key


def test_the_choice_is_a_groups():
    def weights():
        return [torch.nn.Parameter(torch.full(shape, 0.1)) for shape in [(4,), (2, 2)]]

    for penalize, zeros in ((None, [0, 4]), (True, [4, 4]), (False, [0, 0])):
        params = weights()
        optimizer = ProxSG(params, lr=1.0, lambda_=1.0, penalize=penalize)
        for param in params:
            param.grad = torch.zeros_like(param)
        optimizer.step()
        assert [int((param == 0).sum()) for param in params] == zeros
        assert optimizer.penalty() == 0.0 or penalize is not True

    strong, weak = weights(), weights()
    optimizer = ProxSG([{"params": strong, "lambda_": 1.0}, {"params": weak, "lambda_": 0.04}], lr=1.0)
    for param in strong + weak:
        param.grad = torch.zeros_like(param)
    assert optimizer.penalty() == pytest.approx(1.0 * 0.4 + 0.04 * 0.4)
    optimizer.step()
    assert torch.equal(strong[1], torch.zeros(2, 2))
    torch.testing.assert_close(weak[1].detach(), torch.full((2, 2), 0.06))
