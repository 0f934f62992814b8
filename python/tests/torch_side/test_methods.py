"""Whole runs of each method against the core's operators, step by step, and against what they must find."""

import math

import numpy as np
import pytest
import torch

from obprox import _core
from obprox.torch import RDA, OBProxSG, ProxSG, ProxSVRG

rng = np.random.default_rng(3)
DATA = rng.normal(size=(60, 12))
TARGETS = DATA @ np.where(rng.random(12) < 0.4, rng.normal(size=12), 0.0) + 0.1 * rng.normal(size=60)
START = rng.normal(size=12)


def gradient(x, rows=slice(None)):
    """Of half the mean of the squared residuals."""
    return DATA[rows].T @ (DATA[rows] @ x - TARGETS[rows]) / len(TARGETS[rows])


class Run:
    """Least squares over one weight matrix of a single row, its gradient handed over by numpy."""

    def __init__(self, build):
        self.weight = torch.nn.Parameter(torch.from_numpy(START.copy()).reshape(1, -1))
        self.optimizer = build([self.weight])

    @property
    def x(self):
        return self.weight.detach().numpy().ravel()

    def closure(self, rows=slice(None)):
        def evaluate():
            residuals = torch.from_numpy(DATA[rows]) @ self.weight[0] - torch.from_numpy(TARGETS[rows])
            self.weight.grad = torch.from_numpy(gradient(self.x.copy(), rows)).reshape(1, -1)
            return (residuals**2).mean() / 2

        return evaluate


def batches(steps):
    order = np.random.default_rng(7)
    return [order.choice(60, 15, replace=False) for _ in range(steps)]


def test_prox_sg():
    run = Run(lambda params: ProxSG(params, lr=0.1, lambda_=0.2, weight_decay=0.05))
    x = START
    for rows in batches(30):
        x = _core.prox_step(x, gradient(x, rows), 0.1, 0.2, 0.05)
        run.optimizer.step(run.closure(rows))
        np.testing.assert_array_equal(run.x, x)
    assert 0 < (x == 0).sum() < 12


@pytest.mark.parametrize("n_p, n_o, unit", [(2, 3, 4), (3, None, 5), (7, 4, 1), (0, None, 3), (4, 0, 2)])
def test_obprox_sg_switches_as_algorithm_4_says(n_p, n_o, unit):
    run = Run(lambda params: OBProxSG(params, lr=0.1, lambda_=0.2, n_p=n_p, n_o=n_o, steps_per_epoch=unit))
    x, phases = START, []
    for k, rows in enumerate(batches(44)):
        cycle = math.inf if n_o is None else (n_p + n_o) * unit
        prox = math.fmod(k, cycle) < n_p * unit
        phases.append(prox)
        assert run.optimizer.phase == ("prox" if prox else "orthant")
        x = (_core.prox_step if prox else _core.orthant_step)(x, gradient(x, rows), 0.1, 0.2)
        run.optimizer.step(run.closure(rows))
        np.testing.assert_array_equal(run.x, x)
    assert len(set(phases)) == (1 if 0 in (n_p, n_o) else 2)


def test_epochs_that_are_told():
    run = Run(lambda params: OBProxSG(params, n_p=1, n_o=2, steps_per_epoch=None))
    phases = []
    for length in (3, 1, 4, 2, 5):
        phases.append(run.optimizer.phase)
        for rows in batches(length):
            run.optimizer.step(run.closure(rows))
            assert run.optimizer.phase == phases[-1]
        run.optimizer.epoch_end()
    assert phases == ["prox", "orthant", "orthant", "prox", "orthant"]


def test_a_phase_can_be_held():
    run = Run(lambda params: OBProxSG(params, n_p=None, n_o=None, steps_per_epoch=1))
    for rows in batches(20):
        run.optimizer.step(run.closure(rows))
    assert run.optimizer.phase == "prox"
    run.optimizer.switch_to("orthant")
    assert run.optimizer.phase == "orthant"
    copy = Run(lambda params: OBProxSG(params, n_p=None, n_o=None, steps_per_epoch=1))
    copy.optimizer.load_state_dict(run.optimizer.state_dict())
    assert copy.optimizer.phase == "orthant"
    run.optimizer.switch_to(None)
    assert run.optimizer.phase == "prox"


def test_rda_from_zero():
    run = Run(lambda params: RDA(params, gamma=3.0, lambda_=0.2, centre="zero", weight_decay=0.1))
    x, total = START, np.zeros(12)
    for t, rows in enumerate(batches(30), start=1):
        total = total + gradient(x, rows)
        x = _core.rda_weight(total, t, 3.0, 0.2, 0.1)
        run.optimizer.step(run.closure(rows))
        np.testing.assert_allclose(run.x, x, rtol=1e-13, atol=0)
        x = run.x.copy()
    assert 0 < (x == 0).sum() < 12


def test_rda_starts_where_the_network_is():
    """No jump: with a large γ the first step stays near the start, whatever the start is."""
    run = Run(lambda params: RDA(params, gamma=1e9, lambda_=0.2))
    run.optimizer.step(run.closure())
    np.testing.assert_allclose(run.x, START, atol=1e-7)


def test_rda_minds_the_course_of_lr_and_not_its_size():
    ends = []
    for lr, late in ((1.0, 1.0), (0.25, 1.0), (1.0, 0.0)):
        run = Run(lambda params: RDA(params, gamma=3.0, lambda_=0.2, lr=lr))
        for k, rows in enumerate(batches(30)):
            if k == 20:
                run.optimizer.param_groups[0]["lr"] *= late
                half = run.x.copy()
            run.optimizer.step(run.closure(rows))
        ends.append(run.x.copy())
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-12)
    assert np.abs(ends[0] - half).max() > 1e-3
    np.testing.assert_allclose(ends[2], half, rtol=1e-12)


def test_prox_svrg():
    run = Run(lambda params: ProxSVRG(params, lr=0.1, lambda_=0.2))
    x = START
    for epoch in range(4):
        anchor, full = x, gradient(x)
        loss = run.optimizer.anchor(run.closure())
        assert loss.item() == pytest.approx(((DATA @ x - TARGETS) ** 2).mean() / 2)
        for rows in batches(6):
            reduced = (gradient(x, rows) - gradient(anchor, rows)) + full
            loss = run.optimizer.step(run.closure(rows))
            assert loss.item() == pytest.approx(((DATA[rows] @ x - TARGETS[rows]) ** 2).mean() / 2)
            x = _core.prox_step(x, reduced, 0.1, 0.2)
            np.testing.assert_array_equal(run.x, x)


def test_prox_svrg_finds_the_optimum_where_prox_sg_cannot():
    """Variance reduction: with a constant step the distance from optimality goes to zero, support and all."""
    svrg = Run(lambda params: ProxSVRG(params, lr=0.1, lambda_=0.2))
    plain = Run(lambda params: ProxSG(params, lr=0.1, lambda_=0.2))
    for epoch in range(150):
        svrg.optimizer.anchor(svrg.closure())
        for rows in batches(4):
            svrg.optimizer.step(svrg.closure(rows))
            plain.optimizer.step(plain.closure(rows))
    assert kkt(svrg.x, 0.2) < 1e-10 < 1e-4 < kkt(plain.x, 0.2)


def kkt(x, l1):
    """How far x is from optimal."""
    g = gradient(x)
    return np.where(x == 0, np.maximum(np.abs(g) - l1, 0), np.abs(g + l1 * np.sign(x))).max()


def test_prox_svrg_draws_the_same_dropout_at_the_anchor():
    """With the anchor at the weights both gradients of a batch are equal, so the step goes along the full one."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 20), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(20))
    optimizer = ProxSVRG(model.parameters(), buffers=model.buffers())
    inputs = torch.randn(8, 5)

    def closure():
        optimizer.zero_grad()
        loss = model(inputs).pow(3).sum()
        loss.backward()
        return loss

    optimizer.anchor(closure)
    full = [param.grad.clone() for param in model.parameters()]
    seen = model[2].num_batches_tracked.item()
    optimizer.step(closure)
    assert model[2].num_batches_tracked.item() == seen + 1
    for param, gradient in zip(model.parameters(), full):
        torch.testing.assert_close(param.grad, gradient)


def test_prox_svrg_leaves_the_weights_when_a_closure_fails():
    run = Run(lambda params: ProxSVRG(params, lr=0.1, lambda_=0.2))
    run.optimizer.anchor(run.closure())
    run.optimizer.step(run.closure())
    before = run.x.copy()

    def fails():
        raise KeyError("lost")

    with pytest.raises(KeyError):
        run.optimizer.step(fails)
    np.testing.assert_array_equal(run.x, before)


def test_momentum_is_sgd_where_nothing_is_penalised():
    for nesterov in (False, True):
        weights = [torch.nn.Parameter(torch.linspace(-1, 1, 6).double().reshape(2, 3)) for _ in range(2)]
        ours = ProxSG([weights[0]], lr=0.1, lambda_=0.0, momentum=0.9, nesterov=nesterov)
        torchs = torch.optim.SGD([weights[1]], lr=0.1, momentum=0.9, nesterov=nesterov)
        for _ in range(10):
            for weight, optimizer in zip(weights, (ours, torchs)):
                optimizer.zero_grad()
                (weight**4).sum().backward()
                optimizer.step()
        torch.testing.assert_close(*weights, rtol=1e-13, atol=0)
