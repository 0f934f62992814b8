"""The steps on tensors, entry by entry those of the Rust core."""

import itertools
import math

import numpy as np
import pytest
import torch

from obprox import _core
from obprox.torch import _steps

STEP, L1 = 0.3, 0.7
# Every pairing of these as weight and gradient: both signs, zeros of both signs, the edges of the shrinking region,
# tiny and huge numbers, and what is not a finite number.
EDGES = [0.0, -0.0, 1.0, -1.0, 0.21, -0.21, 0.7, -0.7, 5e-324, 1e-300, -1e-300, 1e300, math.inf, -math.inf, math.nan]


def corpus():
    pairs = np.array(list(itertools.product(EDGES, EDGES)))
    random = np.random.default_rng(0).normal(size=(3000, 2))
    random[::3, 0] = 0
    return np.concatenate([pairs, random]).T.copy()


def tensors(array):
    """An array as several tensors of different shapes, as a network has them."""
    return [piece.clone() for piece in torch.from_numpy(array.copy()).split([1, 224, 3000])]


def same(tensors, expected):
    """Equal to the bit; zeros must be zeros and not −0, and NaN where NaN is due."""
    found = torch.cat(tensors).numpy()
    np.testing.assert_array_equal(found, expected)
    assert not np.signbit(found[found == 0]).any()


@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize("l2", [0.0, 0.4])
@pytest.mark.parametrize("kind", ["prox", "orthant"])
def test_steps_are_those_of_the_core(kind, l2, foreach):
    x, gradient = corpus()
    step_ = {"prox": _steps.prox_, "orthant": _steps.orthant_}[kind]
    core = {"prox": _core.prox_step, "orthant": _core.orthant_step}[kind]
    moved = tensors(x)
    step_(moved, tensors(gradient), STEP, L1, l2, foreach=foreach)
    same(moved, core(x, gradient, STEP, L1, l2))


@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize("kind", ["prox", "orthant"])
def test_without_a_penalty_every_entry_moves(kind, foreach):
    x, gradient = corpus()
    step_ = {"prox": _steps.prox_, "orthant": _steps.orthant_}[kind]
    moved = tensors(x)
    step_(moved, tensors(gradient), STEP, 0.0, 0.0, foreach=foreach)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(torch.cat(moved).numpy(), x - STEP * gradient)


@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize("l2", [0.0, 0.4])
def test_dual_averaging_is_that_of_the_core(l2, foreach):
    _, mean = corpus()
    moved = tensors(np.full_like(mean, 9.0))
    centres = tensors(np.zeros_like(mean))
    _steps.dual_average_(moved, centres, tensors(mean), 0.2, L1, l2, foreach=foreach)
    same(moved, _core.dual_average(mean, 0.2, L1, l2))


@pytest.mark.parametrize("foreach", [True, False])
def test_dual_averaging_around_a_centre_minimises_its_model(foreach):
    generator = torch.Generator().manual_seed(0)
    centre, mean = torch.randn(2, 500, generator=generator, dtype=torch.float64)
    x = torch.empty_like(centre)
    beta, l1, l2 = 0.5, 0.3, 0.1
    _steps.dual_average_([x], [centre], [mean], beta, l1, l2, foreach=foreach)
    slope = mean + l2 * x + beta * (x - centre)
    assert 50 < (x == 0).sum() < 450
    assert (slope[x == 0].abs() <= l1).all()
    torch.testing.assert_close(slope[x != 0], -l1 * x[x != 0].sign())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["prox", "orthant"])
def test_narrow_types_make_the_same_zeros(kind, dtype):
    """In a narrow type a step is the core's step on the same numbers, but for rounding."""
    x, gradient = (torch.from_numpy(part).to(dtype) for part in np.random.default_rng(1).normal(size=(2, 5000)))
    x[::3] = 0
    core = {"prox": _core.prox_step, "orthant": _core.orthant_step}[kind]
    exact = torch.from_numpy(core(x.double().numpy(), gradient.double().numpy(), STEP, L1))
    loop, foreach = x.clone(), x.clone()
    step_ = {"prox": _steps.prox_, "orthant": _steps.orthant_}[kind]
    step_([loop], [gradient], STEP, L1, 0.0, foreach=False)
    step_([foreach], [gradient], STEP, L1, 0.0, foreach=True)
    assert torch.equal(loop, foreach)
    rounding = 16 * torch.finfo(dtype).eps
    torch.testing.assert_close(loop.double(), exact, rtol=0, atol=rounding)
    clear = (exact == 0) | (exact.abs() > rounding)
    assert ((loop == 0) == (exact == 0))[clear & (x == 0)].all()
    assert (loop == 0).sum() > 500
