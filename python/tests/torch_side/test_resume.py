"""A run that is stopped, saved, loaded and resumed goes on to the same bits."""

import copy
import io

import pytest
import torch

from .runs import METHODS, assert_same_bits, network, train


def saved_and_loaded(state):
    """A state after a trip through a file."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("stop", [5, 8, 13])
def test_resuming_is_not_stopping(name, stop):
    def parts():
        model = network()
        optimizer = METHODS[name](model.parameters())
        return model, optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    model, optimizer, scheduler = parts()
    train(model, optimizer, 26, scheduler=scheduler)

    first = parts()
    train(*first[:2], stop, scheduler=first[2])
    second = parts()
    for ours, theirs in zip(second, first):
        ours.load_state_dict(saved_and_loaded(theirs.state_dict()))
    train(*second[:2], 26 - stop, start=stop, scheduler=second[2])
    assert_same_bits(second[0], model)


def test_the_settings_are_resumed_too():
    """As in PyTorch's own optimizers, the loaded options take the place of the given ones."""
    params = list(network().parameters())
    optimizer = METHODS["obprox-sg"](params)
    state = optimizer.state_dict()
    other = METHODS["obprox-sg+"](params)
    other.load_state_dict(state)
    assert other.param_groups[0]["n_o"] == 3 and other.param_groups[0]["momentum"] == 0.0


@pytest.mark.parametrize("name", METHODS)
def test_a_deep_copy_goes_on_the_same_way(name):
    model = network()
    optimizer = METHODS[name](model.parameters())
    train(model, optimizer, 7)
    model_copy, optimizer_copy = copy.deepcopy((model, optimizer))
    train(model, optimizer, 10, start=7)
    train(model_copy, optimizer_copy, 10, start=7)
    assert_same_bits(model, model_copy)
