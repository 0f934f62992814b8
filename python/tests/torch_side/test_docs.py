"""What the page on PyTorch says is so: its blocks, one after the other, are a program that runs."""

import re
from pathlib import Path

from obprox.torch import sparsity_report

PAGE = Path(__file__).parents[3] / "docs" / "pytorch.md"


def test_the_page_is_a_program(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    names = {}
    for block in re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        lines_before = text.count("\n", 0, block.start()) + 1
        exec(compile("\n" * lines_before + block[1], str(PAGE), "exec"), names)
        if "for epoch in range(30)" in block[1]:
            assert sparsity_report(names["model"]).weights.density < 0.5, "the loop makes it sparse"
            assert names["optimizer"].phase == "orthant"
    assert "rows alive" in capsys.readouterr().out
    assert names["network"].scores(names["images"].numpy()).shape == (256, 2)
    assert "python/examples/sparse_network.py" in text, "the page names its script"
