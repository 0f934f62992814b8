"""The steps on tensors, entry by entry those of the Rust crate's ``penalty::shrink``.

Each comes as the plain loop over tensors and as its ``foreach`` twin, which hands all tensors to one call. Both round
the same way: a product and a sum are two operations everywhere, never one fused one, so the twins agree to the bit and,
in float64, so do they with Rust. Comparisons are such that NaN goes through: it must never be taken for a zero.

The step size may be a tensor of no dimension: torch.compile takes its value as an input, where it would compile a new
step for every new float.
"""

from __future__ import annotations

from typing import Sequence, Union

import torch
from torch import Tensor

Tensors = Sequence[Tensor]
Number = Union[float, Tensor]


def prox_(xs: Tensors, gradients: Tensors, step: Number, l1: float, l2: float, *, foreach: bool) -> None:
    """x ← S(x − αg, αλ)/(1 + αλ₂), with S(z, t) = sign(z)·max(|z| − t, 0)."""
    descend_(xs, gradients, step, foreach=foreach)
    if l1 != 0:
        shrink_(xs, step * l1, foreach=foreach)
    if l2 != 0:
        divide_(xs, 1 + step * l2, foreach=foreach)


def orthant_(xs: Tensors, gradients: Tensors, step: Number, l1: float, l2: float, *, foreach: bool) -> None:
    """x ← Proj(x − α(g + λ sign x))/(1 + αλ₂): an entry that would leave its side of zero becomes zero.

    A zero stays zero whatever its gradient. Without λ there is no face, and the step is a plain one.
    """
    if l1 == 0:
        return prox_(xs, gradients, step, l1, l2, foreach=foreach)
    if foreach:
        signs = foreach_sign(xs)
        moves = torch._foreach_mul(signs, l1)
        torch._foreach_add_(moves, gradients)
        trials = torch._foreach_sub(xs, foreach_scale(moves, step))
        for x, trial, side in zip(xs, trials, torch._foreach_mul(trials, signs)):
            trial.masked_fill_((x == 0) | (side <= 0), 0)
        foreach_copy_(xs, trials)
    else:
        for x, gradient in zip(xs, gradients):
            sign = x.sign()
            trial = x - (gradient + sign * l1) * step
            x.copy_(torch.where((x == 0) | (trial * sign <= 0), torch.zeros_like(x), trial))
    if l2 != 0:
        divide_(xs, 1 + step * l2, foreach=foreach)


def hold_(xs: Tensors, gradients: Tensors, step: Number, l2: float, *, foreach: bool) -> None:
    """x ← (x − αg)/(1 + αλ₂) on the support: zeros stay zeros, nothing is shrunk towards them."""
    zeros = [x == 0 for x in xs]
    descend_(xs, gradients, step, foreach=foreach)
    for x, zero in zip(xs, zeros):
        x.masked_fill_(zero, 0)
    if l2 != 0:
        divide_(xs, 1 + step * l2, foreach=foreach)


def dual_average_(
    xs: Tensors, centres: Tensors, means: Tensors, beta: float, l1: float, l2: float, *, foreach: bool
) -> None:
    """x ← argmin over u of ḡ·u + λ|u| + (λ₂/2)u² + (β/2)(u − centre)², which is S(β·centre − ḡ, λ)/(β + λ₂)."""
    if foreach:
        foreach_copy_(xs, centres)
        torch._foreach_mul_(xs, beta)
        torch._foreach_sub_(xs, means)
    else:
        for x, centre, mean in zip(xs, centres, means):
            x.copy_(centre * beta - mean)
    if l1 != 0:
        shrink_(xs, l1, foreach=foreach)
    divide_(xs, beta + l2, foreach=foreach)


def descend_(xs: Tensors, gradients: Tensors, step: Number, *, foreach: bool) -> None:
    """x ← x − αg."""
    if foreach:
        torch._foreach_sub_(xs, foreach_scale(gradients, step))
    else:
        for x, gradient in zip(xs, gradients):
            x.sub_(gradient * step)


def shrink_(xs: Tensors, threshold: Number, *, foreach: bool) -> None:
    """x ← S(x, t) for t > 0, as x less its part within [−t, t]: exact zeros, never −0, and NaN stays NaN."""
    if foreach:
        torch._foreach_sub_(xs, foreach_clamp(xs, threshold))
    else:
        for x in xs:
            x.sub_(x.clamp(-threshold, threshold))


def divide_(xs: Tensors, divisor: Number, *, foreach: bool) -> None:
    """x ← x/d."""
    if foreach and not isinstance(divisor, Tensor):
        torch._foreach_div_(xs, divisor)
    else:
        for x in xs:
            x.div_(divisor)


def accumulate_(sums: Tensors, gradients: Tensors, decay: float, weight: float, *, foreach: bool) -> None:
    """s ← decay·s + weight·g."""
    if foreach:
        if decay != 1:
            torch._foreach_mul_(sums, decay)
        torch._foreach_add_(sums, gradients if weight == 1 else torch._foreach_mul(gradients, weight))
    else:
        for total, gradient in zip(sums, gradients):
            if decay != 1:
                total.mul_(decay)
            total.add_(gradient if weight == 1 else gradient * weight)


# Operations that PyTorch's foreach family learnt after 1.13, or has for plain numbers only.


def foreach_scale(xs: Tensors, factor: Number) -> Tensors:
    """The products with a factor."""
    return [x * factor for x in xs] if isinstance(factor, Tensor) else torch._foreach_mul(xs, factor)


def foreach_sign(xs: Tensors) -> Tensors:
    """The signs, 0 for zeros and NaN."""
    return torch._foreach_sign(xs) if hasattr(torch, "_foreach_sign") else [x.sign() for x in xs]


def foreach_clamp(xs: Tensors, bound: Number) -> Tensors:
    """The parts within [−bound, bound]."""
    if isinstance(bound, Tensor) or not hasattr(torch, "_foreach_clamp_max_"):
        return [x.clamp(-bound, bound) for x in xs]
    parts = torch._foreach_clamp_min(xs, -bound)
    torch._foreach_clamp_max_(parts, bound)
    return parts


def foreach_copy_(xs: Tensors, sources: Tensors) -> None:
    """x ← source."""
    if hasattr(torch, "_foreach_copy_"):
        torch._foreach_copy_(xs, sources)
    else:
        for x, source in zip(xs, sources):
            x.copy_(source)
