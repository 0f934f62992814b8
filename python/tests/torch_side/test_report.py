"""How sparse a network is, as data and as a table."""

import math

import torch

from obprox.torch import sparsity_report


def model():
    layers = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(6, 2))
    with torch.no_grad():
        for param in layers.parameters():
            param.fill_(1.0)
        layers[0].weight[1:3] = 0
        layers[0].weight[0, 0] = -0.0
        layers[2].weight[0, 0] = math.nan
        layers[2].bias[0] = 0
    return layers


def test_counts():
    report = sparsity_report(model())
    by_name = {row["layer"]: row for row in report.rows()}
    assert by_name["0.weight"] == {
        "layer": "0.weight",
        "shape": (4, 2, 3, 3),
        "entries": 72,
        "nonzero": 27,
        "density": 27 / 72,
        "rows_alive": 2,
    }
    assert by_name["2.weight"]["nonzero"] == 12, "NaN is not a zero"
    assert by_name["2.bias"]["nonzero"] == 1 and by_name["2.bias"]["rows_alive"] is None
    assert report.weights == (84, 39)
    assert report.total == (84 + 4 + 8 + 2, 39 + 4 + 8 + 1)
    assert report.weights.density == 39 / 84


def test_state_dicts_shared_tensors_and_empty_models():
    network = model()
    assert sparsity_report(dict(network.named_parameters())) == sparsity_report(network)
    tied = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    tied[1].weight = tied[0].weight
    assert sparsity_report(tied).total.entries == 9 + 3 + 3
    assert sparsity_report(torch.nn.ReLU()).total.density == 0.0
    assert "weights" in str(sparsity_report(torch.nn.ReLU()))


def test_the_table():
    assert str(sparsity_report(model())).splitlines() == [
        "layer     shape    entries  nonzero  density  rows alive",
        "────────────────────────────────────────────────────────",
        "0.weight  4×2×3×3       72       27    37.5%         2/4",
        "0.bias    4              4        4   100.0%",
        "1.weight  4              4        4   100.0%",
        "1.bias    4              4        4   100.0%",
        "2.weight  2×6           12       12   100.0%         2/2",
        "2.bias    2              2        1    50.0%",
        "────────────────────────────────────────────────────────",
        "weights                 84       39    46.4%",
        "all                     98       52    53.1%",
    ]
    html = sparsity_report(model())._repr_html_()
    assert html.count("<tr>") == 9 and "<td>37.5%</td>" in html
