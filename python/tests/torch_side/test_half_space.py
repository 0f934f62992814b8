"""Half-space steps: exactly the share of channels that was asked for, around any optimizer."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from obprox.torch import HalfSpace, OBProxSG, before_after, channel_groups, shrink, sparsity_report

from .test_graph import Block, Mobile, close, images


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU())
        self.block, self.fc = Block(12), nn.Linear(12, 4)

    def forward(self, x):
        return self.fc(F.adaptive_avg_pool2d(self.block(self.stem(x)), 1).flatten(1))


OPTIMIZERS = {
    "sgd": lambda params: torch.optim.SGD(params, lr=0.05),
    "momentum": lambda params: torch.optim.SGD(params, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda params: torch.optim.Adam(params, lr=1e-2),
    "adamw": lambda params: torch.optim.AdamW(params, lr=1e-2),
    # Single weights as well as whole channels.
    "obproxsg": lambda params: OBProxSG(
        params, lr=0.05, lambda_=1e-4, momentum=0.9, n_p=0, n_o=None, steps_per_epoch=4, target_density=0.3, total_steps=40
    ),
}


def train(model, steps, count):
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(32, 3, 8, 8, generator=generator)
    targets = (inputs.mean((2, 3)) @ torch.randn(3, 4, generator=generator)).argmax(1)
    for _ in range(count):
        torch.manual_seed(steps.steps)  # what dropout leaves out
        steps.zero_grad()
        loss = F.cross_entropy(model.train()(inputs), targets)
        loss.backward()
        steps.step()
    return loss.item()


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("share", [0.5, 0.7])
def test_exactly_the_share_that_was_asked_for(name, share):
    torch.manual_seed(0)
    model = Net()
    groups = channel_groups(model, images())
    steps = HalfSpace(OPTIMIZERS[name](model.parameters()), model, images(), target_group_sparsity=share, total_steps=40)
    first = train(model, steps, 1)
    assert steps.group_sparsity == 0
    assert train(model, steps, 39) < first
    params = dict(model.named_parameters())
    dead = [all(not params[name][row].any() for name, row in group) for group in groups]
    assert sum(dead) == round(share * len(groups)) == round(steps.group_sparsity * len(groups))
    if name == "obproxsg":
        assert sparsity_report(model).weights.density <= 0.3
    small = shrink(model, images())
    count = lambda module: sum(parameter.numel() for parameter in module.parameters())
    assert count(small) < (1 - 0.8 * share) * count(model)
    with torch.no_grad():
        close(small.eval()(images()), model.eval()(images()))


@pytest.mark.parametrize("name", ["momentum", "adamw"])
def test_every_step_is_a_half_space_step_with_one_lambda(name):
    """Groups at or below one threshold become zero, the others shrink by it along their direction."""
    torch.manual_seed(0)
    model = Net()
    groups = channel_groups(model, images())
    optimizer = OPTIMIZERS[name](model.parameters())
    steps = HalfSpace(optimizer, model, images(), target_group_sparsity=0.5, total_steps=20)
    params = dict(model.named_parameters())
    vectors = lambda: [torch.cat([params[name][row].detach().flatten().double() for name, row in group]) for group in groups]
    trials, zeros, shrunk = [], 0, 0
    plain_step = optimizer.step
    optimizer.step = lambda *arguments: (plain_step(*arguments), trials.append(vectors()))[0]
    for _ in range(20):
        before = vectors()
        train(model, steps, 1)
        # A layer that keeps its least is not penalised: no two of the groups that shrink disagree about λ.
        lambdas, fresh, sizes = [], [], []
        for x, z, y in zip(before, trials.pop(), vectors()):
            root = len(x) ** 0.5
            size = (x @ z / x.norm() / root).item() if x.any() else float("-inf")
            if not y.any():
                fresh += [size] if x.any() else []
            elif not torch.equal(y, z):
                assert torch.allclose(y / y.norm(), z / z.norm(), atol=1e-5)
                lambdas.append(((z.norm() - y.norm()) / root).item())
                sizes.append(size)
        zeros, shrunk = zeros + len(fresh), shrunk + len(lambdas)
        assert bool(lambdas) <= bool(fresh), "a penalty makes groups zero"
        for value in lambdas:
            assert value == pytest.approx(max(0.0, *fresh), rel=1e-3, abs=1e-6)
        assert all(size >= max(fresh) for size in sizes)
    assert zeros == round(0.5 * len(groups)) and shrunk > 0


def test_a_resumed_run_takes_the_same_steps():
    def begin():
        torch.manual_seed(0)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        return model, HalfSpace(optimizer, model, images(), target_group_sparsity=0.5, total_steps=20)

    whole, steps = begin()
    train(whole, steps, 20)
    first, steps = begin()
    train(first, steps, 9)
    second, again = begin()
    second.load_state_dict(first.state_dict())
    again.optimizer.load_state_dict(steps.optimizer.state_dict())
    again.load_state_dict(steps.state_dict())
    train(second, again, 11)
    for one, two in zip(whole.parameters(), second.parameters()):
        assert torch.equal(one, two)


def ours(model, lambda_=1e-4, **options):
    keywords = dict(lr=0.05, momentum=0.9, n_p=0, n_o=None, steps_per_epoch=4, target_density=0.3, total_steps=20)
    return OBProxSG(model, lambda_=lambda_, groups="channels", example=images(), target_group_sparsity=0.5, **keywords, **options)


def take(model, optimizer, steps):
    generator = torch.Generator().manual_seed(0)
    inputs, targets = torch.randn(32, 3, 8, 8, generator=generator), torch.arange(32) % 4
    for step in steps:
        torch.manual_seed(step)  # what dropout leaves out
        optimizer.zero_grad()
        F.cross_entropy(model.train()(inputs), targets).backward()
        optimizer.step()


def test_channels_by_the_optimizer_itself_are_those_around_it():
    torch.manual_seed(0)
    one = Net()
    two = copy.deepcopy(one)
    first = ours(one)
    keywords = dict(lr=0.05, lambda_=1e-4, momentum=0.9, n_p=0, n_o=None, steps_per_epoch=4, target_density=0.3, total_steps=20)
    second = HalfSpace(
        OBProxSG(two.parameters(), **keywords), two, images(), target_group_sparsity=0.5, total_steps=20
    )
    assert first.group_sparsity == 0 and OBProxSG(two.parameters(), **keywords).group_sparsity is None
    take(one, first, range(20))
    take(two, second, range(20))
    assert first.group_sparsity == second.group_sparsity > 0.4
    assert first.target_reached
    for a, b in zip(one.parameters(), two.parameters()):
        assert torch.equal(a, b)


@pytest.mark.parametrize("how", ["state", "copy"])
def test_channels_of_the_optimizer_resume_to_the_same_bits(how):
    torch.manual_seed(0)
    whole = Net()
    first = copy.deepcopy(whole)
    optimizer = ours(whole)
    take(whole, optimizer, range(20))
    broken = ours(first)
    take(first, broken, range(9))
    if how == "state":
        second = Net()
        second.load_state_dict(first.state_dict())
        again = ours(second)
        again.load_state_dict(broken.state_dict())
    else:
        second, again = copy.deepcopy((first, broken))
    take(second, again, range(9, 20))
    assert again.group_sparsity == optimizer.group_sparsity
    for a, b in zip(whole.parameters(), second.parameters()):
        assert torch.equal(a, b)
    with pytest.raises(ValueError, match="groups: "):
        OBProxSG(second.parameters(), steps_per_epoch=4).load_state_dict(broken.state_dict())


def test_channels_alone_go_without_lambda():
    torch.manual_seed(0)
    model = Net()
    optimizer = OBProxSG(
        model, lr=0.05, lambda_=0, steps_per_epoch=4, groups="channels", example=images(), target_group_sparsity=0.5, total_steps=20
    )
    take(model, optimizer, range(20))
    rows = model.stem[0].weight.detach().flatten(1)
    assert 0 < rows.any(1).sum() < len(rows), "some channels went"
    assert (rows[rows.any(1)] != 0).all(), "and no single weight of the others"


@pytest.mark.parametrize(
    "options, error, message",
    [
        (dict(groups="filters"), ValueError, "groups must be"),
        (dict(example=torch.zeros(1, 3, 8, 8)), ValueError, "belong to groups"),
        (dict(groups="channels", target_group_sparsity=0.5, total_steps=5), ValueError, "needs example"),
    ],
)
def test_what_groups_lack_is_said(options, error, message):
    with pytest.raises(error, match=message):
        OBProxSG(Net(), steps_per_epoch=4, **options)
    with pytest.raises(TypeError, match="give the module"):
        OBProxSG(Net().parameters(), steps_per_epoch=4, groups="channels", example=images(), target_group_sparsity=0.5, total_steps=5)


def test_every_layer_keeps_channels():
    torch.manual_seed(0)
    model = Net()
    with torch.no_grad():
        model.stem[0].weight *= 1e-3  # the smallest of all
        model.stem[1].weight *= 1e-3
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    steps = HalfSpace(optimizer, model, images(), target_group_sparsity=0.6, total_steps=10)
    train(model, steps, 10)
    assert model.stem[0].weight.flatten(1).any(1).any()


def test_what_it_became_is_told_in_one_table():
    torch.manual_seed(0)
    model = Net()
    with torch.no_grad():
        for layer in (model.block, model.stem):  # every second channel of all that are added
            for name, parameter in layer.named_parameters():
                parameter[::2] = 0
    table = before_after(model, shrink(model, images()), images(), repeats=1)
    rows = {what: (before, after) for what, before, after in table.rows}
    parameters = sum(parameter.numel() for parameter in model.parameters())
    # The stem's 3×3 convolution of each of 8×8 pixels is in the sum, and loses half of its channels.
    assert rows["parameters"][0] == parameters > rows["parameters"][1]
    assert rows["multiply-adds"][0] - rows["multiply-adds"][1] > 64 * 27 * 12 / 2
    assert rows["bytes"][0] == sum(4 * p.numel() for p in model.parameters()) + sum(
        b.numel() * b.element_size() for b in model.buffers()
    )
    assert all(what in str(table) for what in rows) and "of before" in str(table)
    with pytest.raises(ValueError, match="one repeat at least"):
        before_after(model, model, images(), repeats=0)


def test_bad_arguments_are_refused():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for options, message in [
        (dict(target_group_sparsity=1.0, total_steps=10), "target_group_sparsity must lie"),
        (dict(target_group_sparsity=0.5, total_steps=0), "total_steps must be"),
        (dict(target_group_sparsity=0.5, total_steps=5, begin=0.8), "begin and reach"),
        (dict(target_group_sparsity=0.999, total_steps=5), "keep their layers alive"),
    ]:
        with pytest.raises(ValueError, match=message):
            HalfSpace(optimizer, model, images(), **options)
    with pytest.raises(ValueError, match="does not have all parameters"):
        HalfSpace(torch.optim.SGD(model.fc.parameters(), lr=0.1), model, images(), target_group_sparsity=0.5, total_steps=5)
    linear = nn.Linear(192, 3)
    with pytest.raises(ValueError, match="no channels that could go"):
        HalfSpace(
            torch.optim.SGD(linear.parameters(), lr=0.1),
            nn.Sequential(nn.Flatten(), linear),
            images(),
            target_group_sparsity=0.5,
            total_steps=5,
        )
    assert len(channel_groups(Mobile(), images())) > 0
