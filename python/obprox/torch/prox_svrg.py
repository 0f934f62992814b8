"""Prox-SVRG: proximal stochastic gradients with variance reduction."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Optional

import torch
from torch import Tensor

from ._optimizer import Batch, SparseOptimizer
from ._steps import prox_


class ProxSVRG(SparseOptimizer):
    """Prox-SVRG: x ← S(x − α(∇f_B(x) − ∇f_B(x̃) + ∇f(x̃)), αλ), where x̃ is the anchor, renewed every epoch.

    Problem: min f(x) + λ‖x‖₁. Citation: Xiao and Zhang, A proximal stochastic gradient method with progressive variance
    reduction, 2014. The next anchor is the last iterate: the mean of the iterates has no zeros.

    Each epoch begins with :meth:`anchor`, whose closure computes the gradient over all the data; each step takes a
    closure that computes the gradient over its batch, and evaluates it twice, at the weights and at the anchor. Both
    evaluations draw the same random numbers, so dropout does not add variance.

    Parameters
    ----------
    params, lr, lambda_, weight_decay, penalize, foreach
        As in :class:`ProxSG`.
    buffers : iterable of Tensor, optional
        ``model.buffers()`` for a model with batch normalisation: the evaluation at the anchor leaves them as they were.

    Examples
    --------
    >>> import torch
    >>> from obprox.torch import ProxSVRG
    >>> data, targets = torch.randn(64, 10), torch.randn(64, 1)
    >>> model, loss_of = torch.nn.Linear(10, 1), torch.nn.functional.mse_loss
    >>> optimizer = ProxSVRG(model.parameters(), lr=0.05, lambda_=0.1)
    >>> def gradient_over(rows):
    ...     def closure():
    ...         optimizer.zero_grad()
    ...         loss = loss_of(model(data[rows]), targets[rows])
    ...         loss.backward()
    ...         return loss
    ...     return closure
    >>> for epoch in range(3):
    ...     loss = optimizer.anchor(gradient_over(slice(None)))
    ...     for rows in torch.randperm(64).split(16):
    ...         loss = optimizer.step(gradient_over(rows))
    """

    def __init__(
        self,
        params: Any,
        lr: float = 0.1,
        lambda_: float = 1e-4,
        *,
        weight_decay: float = 0.0,
        penalize: Optional[bool] = None,
        foreach: bool = True,
        buffers: Iterable[Tensor] = (),
    ) -> None:
        self._buffers = list(buffers)
        defaults = dict(lr=lr, lambda_=lambda_, weight_decay=weight_decay, penalize=penalize, foreach=foreach)
        super().__init__(params, defaults)

    def __getstate__(self) -> Dict[str, Any]:
        return {**super().__getstate__(), "_buffers": self._buffers}

    @torch.no_grad()
    def anchor(self, closure: Callable[[], Any]) -> Any:
        """Begins an epoch: the anchor is here, and its gradient over all the data what ``closure`` leaves in ``.grad``.

        The closure clears the gradients, runs backward over all the data such that the *mean* of the loss is
        differentiated (batches weighed by their size), and returns the loss, which is passed on.
        """
        with torch.enable_grad():
            loss = closure()
        for param in self._params():
            state = self.state[param]
            state["anchor"] = param.clone()
            state["full_gradient"] = _gradient(param)
        return loss

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Takes one step on the batch whose gradient ``closure`` computes, and returns the loss at the weights.

        The gradient with reduced variance is left in ``.grad``.
        """
        if closure is None:
            raise RuntimeError("ProxSVRG evaluates each batch twice: step() needs a closure")
        params = list(self._params())
        if any("anchor" not in self.state[param] for param in params):
            raise RuntimeError("ProxSVRG has no anchor yet: call anchor(closure) at the start of each epoch")
        at_anchor = self._gradients_at_anchor(params, closure)
        with torch.enable_grad():
            loss = closure()
        for param, gradient in zip(params, at_anchor):
            if param.grad is not None:
                param.grad = param.grad.sub(gradient).add_(self.state[param]["full_gradient"])
        super().step()
        return loss

    def _gradients_at_anchor(self, params: List[Tensor], closure: Callable[[], Any]) -> List[Tensor]:
        """The batch's gradients at the anchor; weights, buffers and random numbers are left as they were."""
        touched = [*params, *self._buffers]
        kept = [tensor.detach().clone() for tensor in touched]
        cuda = {param.device.index for param in params if param.device.type == "cuda"}
        try:
            for param in params:
                param.copy_(self.state[param]["anchor"])
            with torch.random.fork_rng(devices=cuda), torch.enable_grad():
                closure()
            return [_gradient(param) for param in params]
        finally:
            for tensor, value in zip(touched, kept):
                tensor.copy_(value)

    def _params(self) -> Iterable[Tensor]:
        return (param for group in self.param_groups for param in group["params"])

    def _update(self, batch: Batch, group: Dict[str, Any]) -> None:
        prox_(batch.params, batch.gradients, group["lr"], batch.l1, batch.l2, foreach=group["foreach"])


def _gradient(param: Tensor) -> Tensor:
    """The gradient at hand, of a tensor that the loss may not depend on."""
    return torch.zeros_like(param) if param.grad is None else param.grad.clone()
