"""What the documents say on PyTorch is so: the blocks of its page, one after the other, are a program that runs."""

import re
from pathlib import Path

from obprox.torch import nets, sparsity_report

ROOT = Path(__file__).parents[3]


def text_and_blocks(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    return text, re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def test_the_page_is_a_program(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text, blocks = text_and_blocks("docs/pytorch.md")
    names = {}
    for block in blocks:
        exec(block, names)
        if "for epoch in range(30)" in block:
            assert sparsity_report(names["model"]).weights.density < 0.5, "the loop makes it sparse"
            assert names["optimizer"].phase == "orthant"
    assert "rows alive" in capsys.readouterr().out
    assert names["network"].scores(names["images"].numpy()).shape == (256, 2)
    assert "python/examples/sparse_network.py" in text, "the page names its script"


def test_the_block_of_the_readme(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = [block for block in text_and_blocks("README.md")[1] if "obprox.torch" in block]
    exec(block, {"network": nets.SmallCNN(channels=1, width=0.25), "loader": range(10)})
    assert "rows alive" in capsys.readouterr().out and (tmp_path / "network.obz").exists()
