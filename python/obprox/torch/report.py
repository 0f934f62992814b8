"""How sparse a network is, layer by layer."""

from __future__ import annotations

from html import escape
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple, Union

from torch import Tensor
from torch.nn import Module

Row = Tuple[str, ...]
_HEAD: Row = ("layer", "shape", "entries", "nonzero", "density", "rows alive")


class Density(NamedTuple):
    """How many of a number of entries are not zero; NaN is not zero."""

    entries: int
    nonzero: int

    @property
    def density(self) -> float:
        """The share of entries that are not zero; 0 where there are none."""
        return self.nonzero / self.entries if self.entries else 0.0


class Layer(NamedTuple):
    """One tensor of a network."""

    name: str
    shape: Tuple[int, ...]
    count: Density
    #: Rows of the first dimension (output channels, neurons) with a nonzero entry; None for vectors and scalars.
    rows_alive: Union[int, None]


class SparsityReport(NamedTuple):
    """What :func:`sparsity_report` found; prints as a table."""

    layers: List[Layer]

    @property
    def weights(self) -> Density:
        """Over the tensors of two or more dimensions, those that are penalised by default."""
        return _total([layer for layer in self.layers if len(layer.shape) >= 2])

    @property
    def total(self) -> Density:
        """Over all tensors."""
        return _total(self.layers)

    def rows(self) -> List[Dict[str, Any]]:
        """One dict a tensor, as ``pandas.DataFrame`` takes them."""
        return [
            {
                "layer": layer.name,
                "shape": layer.shape,
                "entries": layer.count.entries,
                "nonzero": layer.count.nonzero,
                "density": layer.count.density,
                "rows_alive": layer.rows_alive,
            }
            for layer in self.layers
        ]

    def _cells(self) -> Tuple[List[Row], List[Row]]:
        """The table as texts: a row for each tensor, and the totals."""
        body = [
            (layer.name, "×".join(map(str, layer.shape)) or "scalar", *_figures(layer.count), _alive(layer))
            for layer in self.layers
        ]
        return body, [("weights", "", *_figures(self.weights), ""), ("all", "", *_figures(self.total), "")]

    def __str__(self) -> str:
        body, totals = self._cells()
        widths = [max(map(len, column)) for column in zip(_HEAD, *body, *totals)]
        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        head, *lines = (_line(row, widths) for row in (_HEAD, *body, *totals))
        return "\n".join([head, rule, *lines[: len(body)], rule, *lines[len(body) :]])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        body, totals = self._cells()
        head, *rows = (
            "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
            for tag, row in [("th", _HEAD), *(("td", row) for row in body), *(("th", row) for row in totals)]
        )
        return f"<table><tr>{head}</tr>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"


def sparsity_report(model: Union[Module, Mapping[str, Tensor]]) -> SparsityReport:
    """Counts the nonzero entries of every parameter of a model, or of every tensor of a ``state_dict``.

    A tensor that several layers share is counted once.

    Examples
    --------
    >>> import torch
    >>> from obprox.torch import sparsity_report
    >>> model = torch.nn.Linear(4, 2)
    >>> with torch.no_grad():
    ...     _ = model.weight[0].zero_()
    >>> sparsity_report(model)
    layer    shape  entries  nonzero  density  rows alive
    ─────────────────────────────────────────────────────
    weight   2×4          8        4    50.0%         1/2
    bias     2            2        2   100.0%
    ─────────────────────────────────────────────────────
    weights               8        4    50.0%
    all                  10        6    60.0%
    """
    named = model.named_parameters() if isinstance(model, Module) else model.items()
    return SparsityReport([_layer(name, tensor.detach()) for name, tensor in named])


def _layer(name: str, tensor: Tensor) -> Layer:
    nonzero = tensor != 0
    rows_alive = int(nonzero.flatten(1).any(1).sum()) if tensor.dim() >= 2 else None
    return Layer(name, tuple(tensor.shape), Density(tensor.numel(), int(nonzero.sum())), rows_alive)


def _total(layers: List[Layer]) -> Density:
    return Density(sum(layer.count.entries for layer in layers), sum(layer.count.nonzero for layer in layers))


def _figures(count: Density) -> Tuple[str, str, str]:
    return f"{count.entries:,}", f"{count.nonzero:,}", f"{count.density:.1%}"


def _alive(layer: Layer) -> str:
    return "" if layer.rows_alive is None else f"{layer.rows_alive:,}/{layer.shape[0]:,}"


def _line(row: Row, widths: List[int]) -> str:
    texts = [cell.ljust(width) for cell, width in zip(row[:2], widths)]
    return "  ".join(texts + [cell.rjust(width) for cell, width in zip(row[2:], widths[2:])]).rstrip()
