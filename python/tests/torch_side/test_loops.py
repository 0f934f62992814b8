"""The optimizers in the loops people write: closures, schedulers, scaled gradients, compiled steps, refused options."""

import subprocess
import sys

import pytest
import torch

from obprox.torch import RDA, OBProxSG, ProxSG, ProxSVRG

from .runs import METHODS, assert_same_bits, network, train


def a_weight():
    return torch.nn.Parameter(torch.ones(2, 2))


def test_a_closure_runs_with_gradients_and_its_loss_is_returned():
    weight = a_weight()
    optimizer = ProxSG([weight], lr=0.25, lambda_=0.0)

    def closure():
        optimizer.zero_grad()
        loss = (weight**2).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4.0
    assert torch.equal(weight.detach(), torch.full((2, 2), 0.5))
    assert optimizer.step() is None


@pytest.mark.parametrize("name", METHODS)
def test_schedulers_move_the_step_size(name):
    optimizer = METHODS[name]([a_weight()])
    first = optimizer.param_groups[0]["lr"]
    train_epochs = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1], gamma=0.1)
    with pytest.warns(UserWarning, match="lr_scheduler.step"):
        train_epochs.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(first / 10)


def test_a_group_that_joins_later_joins_the_phase():
    early, late = a_weight(), a_weight()
    optimizer = OBProxSG([early], n_p=3, n_o=None, steps_per_epoch=1, lr=0.1, lambda_=0.1)
    for _ in range(4):
        early.grad = torch.zeros(2, 2)
        optimizer.step()
    optimizer.add_param_group({"params": [late]})
    with torch.no_grad():
        late[0, 0] = 0.0
    late.grad = torch.full((2, 2), -1.0)
    optimizer.step()
    assert late[0, 0] == 0.0 and late[1, 1] > 1.0


@pytest.mark.parametrize("name", ["prox-sg", "obprox-sg", "obprox-sg+", "rda"])
def test_scaled_gradients(name):
    """With a GradScaler the weights are those without one; a step that overflowed is skipped and not counted."""
    if not hasattr(torch.amp, "GradScaler"):
        pytest.skip("this PyTorch scales gradients on CUDA only")

    def run(scaler):
        model = network(torch.float32)
        optimizer = METHODS[name](model.parameters())
        for step in range(8):
            torch.manual_seed(step)
            inputs, targets = torch.randn(16, 1, 6, 6), torch.randint(3, (16,))
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs), targets)
            if scaler is None:
                loss.backward()
                if step != 2:
                    optimizer.step()
                continue
            scaler.scale(loss).backward()
            if step == 2:
                model[0].weight.grad[0, 0, 0, 0] = torch.inf
            scaler.step(optimizer)
            scaler.update()
        return model, optimizer

    model, optimizer = run(torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1000))
    plain, _ = run(None)
    assert_same_bits(model, plain)
    assert optimizer.param_groups[0].get("steps", 7) == 7


@pytest.mark.parametrize("name", ["prox-sg", "obprox-sg", "nesterov", "rda"])
def test_a_compiled_step_is_the_step(name):
    """And is compiled a few times, not once a step: counts and step sizes move without a new graph."""
    if not hasattr(torch, "compile"):
        pytest.skip("this PyTorch has no torch.compile")
    torch._dynamo.reset()
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    models = [network(), network()]
    optimizers = [METHODS[name](model.parameters()) for model in models]
    schedulers = [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99) for optimizer in optimizers]
    compiled = torch.compile(optimizers[1].step, backend=backend)
    for step in range(24):
        for model, optimizer, take in zip(models, optimizers, (optimizers[0].step, compiled)):
            torch.manual_seed(step)
            inputs, targets = torch.randn(16, 1, 6, 6).double(), torch.randint(3, (16,))
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            take()
        for scheduler in schedulers:
            scheduler.step()
    assert_same_bits(*models)
    assert 1 <= len(graphs) <= 5


def test_a_compiled_model_trains():
    if not hasattr(torch, "compile"):
        pytest.skip("this PyTorch has no torch.compile")
    model = network(torch.float32)
    optimizer = METHODS["obprox-sg"](model.parameters())
    train(torch.compile(model, backend="eager"), optimizer, 24)
    assert (model[5].weight == 0).any()


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda p: ProxSG(p, lr=-1.0), "lr must be a finite number of at least 0, not -1.0"),
        (lambda p: ProxSG(p, lambda_=float("nan")), "lambda_ must be"),
        (lambda p: ProxSG(p, weight_decay=-0.1), "weight_decay must be"),
        (lambda p: ProxSG(p, momentum=1.0), "momentum must be"),
        (lambda p: ProxSG(p, nesterov=True), "nesterov needs a momentum"),
        (lambda p: ProxSG(p, penalize="weights"), "penalize must be"),
        (lambda p: ProxSG([{"params": p, "lambda_": -1.0}]), "lambda_ must be"),
        (lambda p: OBProxSG(p, steps_per_epoch=0), "steps_per_epoch must be"),
        (lambda p: OBProxSG(p, n_p=2.5, steps_per_epoch=1), "n_p must be"),
        (lambda p: OBProxSG(p, n_o=-1, steps_per_epoch=1), "n_o must be"),
        (lambda p: OBProxSG(p, n_p=0, n_o=0, steps_per_epoch=1), "both 0"),
        (lambda p: OBProxSG([{"params": p, "n_p": 7}, {"params": [a_weight()]}], steps_per_epoch=1), "all switch"),
        (lambda p: RDA(p, gamma=0.0), "gamma must be"),
        (lambda p: RDA(p, gamma=1.0, centre="mean"), "centre must be"),
    ],
)
def test_what_cannot_be_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build([a_weight()])


def test_what_a_step_cannot_take():
    with pytest.raises(TypeError, match="steps_per_epoch"):
        OBProxSG([a_weight()])
    with pytest.raises(TypeError, match="ProxSG optimises real weights, not torch.complex64"):
        ProxSG([torch.nn.Parameter(torch.zeros(2, 2, dtype=torch.complex64))])
    with pytest.raises(RuntimeError, match="steps_per_epoch=None"):
        OBProxSG([a_weight()], steps_per_epoch=3).epoch_end()
    with pytest.raises(ValueError, match="phase must be"):
        OBProxSG([a_weight()], steps_per_epoch=3).switch_to("newton")
    with pytest.raises(RuntimeError, match="needs a closure"):
        ProxSVRG([a_weight()]).step()
    with pytest.raises(RuntimeError, match=r"call anchor\(closure\)"):
        ProxSVRG([a_weight()]).step(lambda: None)

    embedding = torch.nn.Embedding(4, 3, sparse=True)
    embedding(torch.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="sparse=False"):
        ProxSG(embedding.parameters()).step()


def test_a_refused_group_leaves_the_optimizer_as_it_was():
    optimizer = ProxSG([a_weight()])
    with pytest.raises(ValueError):
        optimizer.add_param_group({"params": [a_weight()], "lambda_": -1.0})
    assert len(optimizer.param_groups) == 1


def test_without_torch_the_import_says_what_to_do():
    code = "import sys; sys.modules['torch'] = None; import obprox; import obprox.torch"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith("ImportError: obprox.torch needs PyTorch")
    assert "pip install torch" in run.stderr
