"""What the documents say is so: their examples run, and so do the scripts beside them."""

import doctest
import inspect
import lzma
import os
import re
import subprocess
import sys
from pathlib import Path

import obprox
import pytest
from obprox._parameters import OF_METHODS, SOLVER

ROOT = Path(__file__).parents[2]
PAGES = ["quick-start", "from-scikit-learn", "choosing-lambda", "methods"]


@pytest.mark.parametrize("page", [*PAGES, "from-liblinear", "survival", "formats"])
def test_the_examples_of_a_page(page):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    # A fence ends what is expected; line numbers stay.
    sessions = re.sub(r"^```.*$", "", text, flags=re.MULTILINE)
    flags = doctest.IGNORE_EXCEPTION_DETAIL if "Traceback" not in text else 0
    test = doctest.DocTestParser().get_doctest(sessions, {}, page, f"{page}.md", 0)
    said = []
    failed, tried = doctest.DocTestRunner(optionflags=flags | doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert tried > 3 and not failed, "".join(said)


def test_the_block_of_the_readme(tmp_path, monkeypatch):
    """As it stands there, where there is a file of the name it uses."""
    (block,) = re.findall(r"^```python\n(from obprox import .*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    packed = lzma.compress((ROOT / "examples" / "planted.svm").read_bytes())
    (tmp_path / "train.svm.xz").write_bytes(packed)
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("matplotlib").use("Agg")
    names = {}
    exec(block, names)
    assert names["model"].certificate_.status == "converged"
    assert (tmp_path / "model.json").exists() and (tmp_path / "train.svm.xz.obx").exists()


@pytest.mark.parametrize("page", PAGES)
def test_the_script_of_a_page(page, tmp_path):
    script = ROOT / "python" / "examples" / f"{page.replace('-', '_')}.py"
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run([sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"examples/{script.name}" in (ROOT / "docs" / f"{page}.md").read_text(), "the page names its script"


def test_the_pages_of_the_site_are_there(tmp_path):
    subprocess.run([sys.executable, ROOT / "docs" / "assemble", tmp_path], check=True)
    named = re.findall(r"[\w-]+\.md", (tmp_path / "mkdocs.yml").read_text())
    assert sorted(named) == sorted(path.name for path in (tmp_path / "pages").iterdir())
    api = (tmp_path / "pages" / "python.md").read_text()
    assert all(f"## {name}\n" in api for name in ("LogisticRegression", "LassoIC", "refit", "solvers.OBProxSG"))
    for page in (tmp_path / "pages").iterdir():
        for target in re.findall(r"\]\(([\w-]+\.md)", page.read_text()):
            assert (page.parent / target).exists(), (page.name, target)


def test_the_tolerance_is_the_commands():
    """It means the same, a relative duality gap, and is the same where nobody gives one."""
    command = (ROOT / "docs" / "command.md").read_text()
    told = re.findall(r"--tol <GAP>(.*?)\[default: ([^]]+)\]", command, re.DOTALL)
    assert len(told) >= 4 and all("relative duality gap" in words for words, _ in told)
    assert {float(default) for _, default in told} == {SOLVER["tol"]}


@pytest.mark.parametrize("name", [name for name in obprox.__all__ if hasattr(getattr(obprox, name), "get_params")])
def test_estimators_have_no_keywords_of_a_method(name):
    parameters = inspect.signature(getattr(obprox, name)).parameters
    assert not OF_METHODS.intersection(parameters)
    if "solver" in parameters:
        assert (parameters["solver"].default, parameters["tol"].default) == ("auto", SOLVER["tol"])


def test_the_stubs_are_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "python" / "stubs", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_stubs_are_true():
    pytest.importorskip("mypy")
    modules = ["obprox._core", "obprox.linear_model", "obprox.criteria", "obprox.cross_validation"]
    options = ["--allowlist", ROOT / "python/tests/stubtest.txt", "--mypy-config-file", ROOT / "pyproject.toml"]
    # --ignore-unused-allowlist: without scikit-learn there is nothing to allow.
    command = [sys.executable, "-m", "mypy.stubtest", *modules, *options, "--ignore-unused-allowlist", "--concise"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "docs")
    assert done.returncode == 0, done.stdout
