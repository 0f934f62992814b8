"""A density that was asked for is reached, held, and the same as in Rust."""

import json
import pathlib

import pytest
import torch

from obprox.torch import OBProxSG, sparsity_report
from obprox.torch._density import Plan, kept, thresholds

from .runs import network, train

#: What the crate obprox-nn makes of the same problem; its own test holds it to the same file.
RUST = pathlib.Path(__file__).parents[3] / "crates/obprox-nn/tests/data/descent.json"


def optimizer(model, **options):
    options = {"lr": 0.1, "lambda_": 1e-3, "n_p": 0, "n_o": None, "steps_per_epoch": 4, "momentum": 0.9, **options}
    return OBProxSG(model.parameters(), target_density=0.1, total_steps=40, **options)


@pytest.mark.parametrize("options", [{}, {"lambda_": 10.0}, {"n_p": 2}, {"n_p": None}, {"foreach": False}])
def test_a_density_is_reached_and_held_whatever_lambda_says(options):
    model = network()
    steps = optimizer(model, **options)
    train(model, steps, 24)
    assert not steps.target_reached
    train(model, steps, 6, start=24)
    assert steps.target_reached and steps.phase == "hold"
    held = sparsity_report(model)
    assert 0.09 < held.weights.density <= 0.1
    assert all(layer.count.nonzero > 0 for layer in held.layers if len(layer.shape) >= 2)
    train(model, steps, 10, start=30)
    assert sparsity_report(model).weights == held.weights


def test_a_broken_descent_goes_on_to_the_same_bits():
    whole = network()
    train(whole, optimizer(whole), 40)
    first = network()
    begun = optimizer(first)
    train(first, begun, 17)
    second = network()
    second.load_state_dict(first.state_dict())
    resumed = optimizer(second)
    resumed.load_state_dict(begun.state_dict())
    train(second, resumed, 23, start=17)
    for ours, theirs in zip(second.parameters(), whole.parameters()):
        assert torch.equal(ours, theirs)


def test_thresholds_are_what_sorting_says():
    generator = torch.Generator().manual_seed(0)
    for keep in range(4, 31):
        sizes = [torch.randn(n, generator=generator).clamp_min(0) for n in (20, 7, 13)]
        limits = thresholds(sizes, [1, 1, 1], [1, 1, 1], keep)
        left = [int((size > limit).sum()) for size, limit in zip(sizes, limits)]
        alive = [int((size > 0).sum()) for size in sizes]
        assert sum(left) == min(keep, sum(alive))
        if limits[0] == limits[1] == limits[2] and keep < sum(alive):
            assert limits[0] == torch.cat(sizes).sort(descending=True).values[keep]
    tiny = [torch.tensor([0.9, 0.8, 0.7, 0.6]), torch.tensor([0.03, 0.02, 0.01])]
    limits = thresholds(tiny, [1, 1], [1, 2], 4)
    assert [int((size > limit).sum()) for size, limit in zip(tiny, limits)] == [2, 2]


def test_the_plan_falls_to_its_target():
    plan = Plan(0.05, 100)
    densities = [plan.density(10, 0.9, done) for done in range(10, 101)]
    assert densities == sorted(densities, reverse=True)
    assert densities[0] == pytest.approx(0.9) and densities[65] == densities[90] == 0.05
    assert kept(0.3, 10) == 3


def test_what_cannot_be_is_refused():
    model = torch.nn.Linear(20, 10)
    params = list(model.parameters())
    for density in (0, 1, -0.5, 2, "5%"):
        with pytest.raises(ValueError, match="target_density must lie above 0 and below 1"):
            OBProxSG(params, steps_per_epoch=1, target_density=density, total_steps=10)
    with pytest.raises(ValueError, match="needs total_steps"):
        OBProxSG(params, steps_per_epoch=1, target_density=0.1)
    with pytest.raises(ValueError, match="to stay alive"):
        OBProxSG(params, steps_per_epoch=1, target_density=0.001, total_steps=10)
    with pytest.raises(ValueError, match="nothing is penalised"):
        OBProxSG(params, lambda_=0.0, steps_per_epoch=1, target_density=0.1, total_steps=10)


def test_rust_takes_the_same_steps():
    expected = json.loads(RUST.read_text())

    def filled(shape, number):
        return torch.tensor([number(at) for at in range(shape.numel())], dtype=torch.float32).view(shape)

    shapes = [torch.Size([6, 8]), torch.Size([3, 6]), torch.Size([5])]
    torch.set_default_dtype(torch.float32)
    xs = [torch.nn.Parameter(filled(shape, lambda at: ((at * 7) % 11 - 5) / 8)) for shape in shapes]
    goals = [filled(shape, lambda at: ((at * 5) % 13 - 6) / 4) for shape in shapes]
    curves = [filled(shape, lambda at: 0.5 + (at % 4) / 4) for shape in shapes]
    steps = OBProxSG(
        xs, lr=0.125, lambda_=0.01, n_p=3, n_o=None, steps_per_epoch=1, momentum=0.5, weight_decay=0.125,
        target_density=0.25, total_steps=40,
    )  # fmt: skip
    phases = []
    for _ in range(40):
        steps.zero_grad()
        sum((0.5 * curve * (x - goal) ** 2).sum() for x, goal, curve in zip(xs, goals, curves)).backward()
        phases.append(steps.phase)
        steps.step()
    assert phases == expected["phases"]
    for x, values in zip(xs, expected["weights"]):
        theirs = torch.tensor(values, dtype=torch.float32)
        assert torch.equal(x.detach().flatten() == 0, theirs == 0)
        torch.testing.assert_close(x.detach().flatten(), theirs, rtol=1e-5, atol=1e-6)
