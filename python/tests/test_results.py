"""What a fit leaves behind, and what can be done with it."""

import copy
import json
import pickle
import subprocess

import numpy as np
import obprox
import pandas
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


@pytest.fixture
def model(problems):
    return obprox.LogisticRegression(C=0.2).fit(problems.X, problems.binary)


def test_the_certificate_is_true(problems, model):
    found = model.certificate_
    margins = model.decision_function(problems.X) * (2 * problems.binary - 1)
    loss = np.mean(np.logaddexp(0, -margins))
    assert found.lambda_ == pytest.approx(1 / (0.2 * len(margins)))
    assert found.f == pytest.approx(loss, rel=1e-12)
    assert found.F == pytest.approx(loss + found.lambda_ * np.abs(model.coef_).sum(), rel=1e-12)
    assert found.nnz == np.count_nonzero(model.coef_)
    assert 0 <= found.gap <= 1e-6 * found.F and found.kkt < 1e-5 and found.status == "converged"
    assert found.lambda_ < found.lambda_max
    assert found["F"] == found.F and dict(found)["gap"] == found.gap
    with pytest.raises(KeyError):
        found["f1"]


def test_the_trace_is_a_table(model):
    assert isinstance(model.trace_, pandas.DataFrame) and len(model.trace_) == model.n_iter_[0]
    assert model.trace_["F"].iloc[-1] == model.certificate_.F
    with pytest.raises(AttributeError):
        obprox.Lasso().trace_


@pytest.mark.parametrize("target", ["binary", "classes", "real"])
def test_sparse_weights_predict_the_same(problems, target):
    kind = obprox.Lasso(0.1) if target == "real" else obprox.LogisticRegression(C=0.2)
    model = kind.fit(problems.X, getattr(problems, target))
    dense, before = model.coef_, model.predict(problems.X)
    assert model.sparsify() is model and sparse.issparse(model.coef_)
    assert model.coef_.nnz == np.count_nonzero(dense)
    np.testing.assert_allclose(model.predict(problems.X), before, rtol=1e-12)
    np.testing.assert_allclose(model.predict(sparse.csr_matrix(problems.X)), before, rtol=1e-12)
    np.testing.assert_array_equal(model.densify().coef_, dense)


def test_copies_are_the_same(problems, model):
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.predict_proba(problems.X), model.predict_proba(problems.X))
        assert other.certificate_ == model.certificate_ and len(other.trace_) == len(model.trace_)
    fresh = clone(model)
    assert fresh.get_params() == model.get_params() and not hasattr(fresh, "coef_")


def test_pipelines_searches_and_output(problems):
    names = [f"f{at}" for at in range(problems.X.shape[1])]
    X = pandas.DataFrame(problems.X, columns=names)
    pipeline = make_pipeline(
        StandardScaler(), SelectFromModel(obprox.SparseClassifier(alpha=0.05)), obprox.LogisticRegression()
    ).set_output(transform="pandas")
    pipeline.fit(X, problems.binary)
    kept = pipeline[-1].feature_names_in_
    assert 0 < len(kept) < len(names) and set(kept) <= set(names)
    assert pipeline.predict(X).shape == problems.binary.shape
    search = GridSearchCV(obprox.LogisticRegression(), {"C": [0.01, 0.3], "l1_ratio": [0.5, 1.0]}, n_jobs=2, cv=3)
    search.fit(X, problems.binary)
    assert search.best_params_["C"] == 0.3
    assert cross_val_score(obprox.Lasso(0.1), X, problems.real, cv=3).mean() > 0.3
    with pytest.warns(UserWarning, match="feature names"):
        search.predict(problems.X)


def test_labels_of_every_kind(problems):
    for labels in (["no", "yes"], [False, True], [-3, 8], [0.5, 1.5]):
        y = np.array(labels)[problems.binary] if labels != [0.5, 1.5] else problems.binary
        model = obprox.LogisticRegression(C=0.2).fit(problems.X, y)
        assert set(model.predict(problems.X)) == set(np.unique(y))
        assert model.classes_.dtype == np.asarray(y).dtype


@pytest.mark.parametrize(
    ("make", "target"),
    [
        (lambda: obprox.LogisticRegression(C=0.2, l1_ratio=0.7), "binary"),
        (lambda: obprox.LogisticRegression(C=0.2), "classes"),
        (lambda: obprox.SparseClassifier("squared-hinge", alpha=0.05), "binary"),
        (lambda: obprox.Lasso(0.1), "real"),
        (lambda: obprox.ElasticNetCV(alphas=5), "real"),
        (lambda: obprox.SparseRegressor("huber", delta=0.7, alpha=0.05), "real"),
        (lambda: obprox.SparseRegressor("poisson", alpha=0.05), "counts"),
    ],
)
def test_saved_models_come_back_and_go_to_the_command(problems, command, tmp_path, make, target):
    y, path, data = getattr(problems, target), tmp_path / "model.json", tmp_path / "data.svm"
    model = make().fit(problems.X, y)
    model.save(path)
    loaded = obprox.load(path)
    np.testing.assert_array_equal(loaded.predict(problems.X), model.predict(problems.X))
    assert loaded.certificate_.F == model.certificate_.F
    assert loaded.alpha * loaded.l1_ratio == pytest.approx(model.certificate_.lambda_)
    assert json.loads(path.read_text())["format"] == "obprox-linear"

    lines = [f"{label} " + " ".join(f"{at + 1}:{float(v)!r}" for at, v in enumerate(row)) for label, row in zip(y, problems.X)]
    data.write_text("\n".join(lines) + "\n")
    said = subprocess.run([command, "predict", path, data], check=True, capture_output=True, text=True).stdout
    np.testing.assert_allclose([float(line) for line in said.split()], model.predict(problems.X), rtol=1e-12)

    # And back: a model that the command trained.
    if target == "binary":
        theirs = tmp_path / "theirs.json"
        alpha = str(model.certificate_.lambda_)
        subprocess.run([command, "fit", data, "--lambda", alpha, "--out", theirs, "--quiet", "--tol", "1e-10"], check=True)
        ours = obprox.SparseClassifier(alpha=float(alpha)).fit(problems.X, y)
        np.testing.assert_allclose(obprox.load(theirs).coef_, ours.coef_, atol=1e-6)


def test_names_of_labels_are_kept(problems, tmp_path):
    y = np.array(["cat", "dog", "eel"])[problems.classes]
    model = obprox.LogisticRegression(C=0.2).fit(pandas.DataFrame(problems.X).rename(columns=str), y)
    model.save(tmp_path / "model.json")
    loaded = obprox.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict(problems.X), model.predict(problems.X.astype(float)))
    np.testing.assert_allclose(loaded.predict_proba(problems.X), model.predict_proba(problems.X))
    assert dict(json.loads((tmp_path / "model.json").read_text())["names"])[0] == "0"


def test_what_cannot_be_saved_or_loaded(problems, tmp_path):
    machine = obprox.SparseClassifier("squared-hinge").fit(problems.X, problems.classes)
    with pytest.raises(ValueError, match="no form for 3 classes"):
        machine.save(tmp_path / "model.json")
    with pytest.raises(ValueError, match="one target"):
        obprox.Lasso(0.1).fit(problems.X, np.column_stack([problems.real] * 2)).save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir()), "nothing is written"
    with pytest.raises(FileNotFoundError, match="nowhere.json"):
        obprox.load(tmp_path / "nowhere.json")
    with pytest.raises(obprox.exceptions.FileMissingError, match="No such file or directory: .*model.json"):
        machine.fit(problems.X, problems.binary).save(tmp_path / "no" / "model.json")
    (tmp_path / "bad.json").write_text("{\n]")
    with pytest.raises(obprox.exceptions.ParseError, match="bad.json:2:1"):
        obprox.load(tmp_path / "bad.json")
    (tmp_path / "other.json").write_text('{"format": "x"}')
    with pytest.raises(ValueError, match="other.json"):
        obprox.load(tmp_path / "other.json")


def test_html_shows_the_certificate(model):
    shown = model._repr_html_()
    assert "certificate" in shown and ">converged<" in shown and "nonzero" in shown and "LogisticRegression" in shown
    assert ">converged<" in model._repr_mimebundle_()["text/html"]
    assert "certificate" not in obprox.Lasso()._repr_html_()
    assert "max_epochs" in obprox.Certificate("max_epochs", 1, 1, None, None, 0, 0, 0, 0, 0.0, 0.1, 0)._repr_html_()


def test_plots(problems, model):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    found = obprox.path(problems.X, problems.classes, loss="logistic", alphas=12)
    for ax in (obprox.plot_path(found), found.plot(label=2), obprox.plot_density(found), obprox.plot_trace(model)):
        assert ax.lines and ax.get_title() and ax.get_xlabel()
    with pytest.warns(obprox.ConvergenceWarning):
        sparse_run = obprox.SparseClassifier(solver="obproxsg", max_iter=12).fit(problems.X, problems.binary)
    figure, axes = plt.subplots(1, 2)
    assert obprox.plot_density(sparse_run, ax=axes[0]) is axes[0]
    assert len(axes[0].patches) == 5, "the Orthant epochs are shaded"
    assert obprox.plot_trace(sparse_run.trace_, ax=axes[1]) is axes[1]
    plt.close("all")


def test_labels_of_a_plot_do_not_touch():
    from obprox.plot import _apart

    np.testing.assert_allclose(_apart([0.0, 5.0], 1.0), [0.0, 5.0])
    np.testing.assert_allclose(_apart([1.0, 1.0, 1.0, 7.0], 1.0), [0.0, 1.0, 2.0, 7.0])
    np.testing.assert_allclose(_apart([0.0, 0.1, 1.2], 1.0), np.array([-1.0, 0.0, 1.0]) + 1.3 / 3)
    assert _apart([], 1.0) == []
