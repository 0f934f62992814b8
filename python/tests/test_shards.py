"""Files that may be larger than memory."""

import numpy as np
import obprox
import pytest
from obprox.solvers import RDA, OBProxSG, OBProxSGPlus, ProxSG, ProxSVRG
from sklearn.datasets import dump_svmlight_file

ALL = [
    obprox.LogisticRegression(C=0.5, tol=1e-9),
    obprox.Lasso(alpha=0.05, tol=1e-9),
    obprox.ElasticNet(alpha=0.05, tol=1e-9),
    obprox.SparseClassifier(alpha=0.02, loss="squared-hinge", tol=1e-9),
    obprox.SparseRegressor(alpha=0.02, loss="huber", tol=1e-9),
]


def parts(tmp_path, X, y, count=3):
    """Files of one data set."""
    for at, rows in enumerate(np.array_split(np.arange(X.shape[0]), count)):
        dump_svmlight_file(X[rows], y[rows], str(tmp_path / f"part-{at}.svm"), zero_based=False)
    return str(tmp_path / "part-*.svm")


def targets(model, problems):
    return problems.classes if hasattr(model, "decision_function") else problems.real


@pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
def test_files_are_their_rows_in_memory(problems, tmp_path, model):
    y = np.asarray(targets(model, problems), dtype=float)
    pattern = parts(tmp_path, problems.X, y)
    width = problems.X.shape[1]
    cache = tmp_path / "cache"
    found = model.fit_files(pattern, memory="50M", cache=cache, n_features=width)
    assert found is model and cache.is_dir()
    coef, F = np.copy(model.coef_), model.certificate_.F
    prediction = model.predict(problems.X)
    again = model.fit_files(tmp_path / "part-0.svm", memory=10**8, n_features=width)
    assert again.n_features_in_ == width and (tmp_path / ".obprox").is_dir()
    model.fit(problems.X, y)
    assert model.certificate_.F == pytest.approx(F, rel=1e-8)
    np.testing.assert_allclose(coef, model.coef_, atol=1e-4)
    np.testing.assert_allclose(prediction, model.predict(problems.X), atol=1e-3)


@pytest.mark.filterwarnings("ignore:.*ended with status")
@pytest.mark.parametrize("solver", [ProxSG(step=0.01), RDA(), ProxSVRG(step=0.01), OBProxSG(step=0.01), OBProxSGPlus(step=0.01)])
def test_methods_do_not_depend_on_the_memory(problems, tmp_path, solver):
    pattern = parts(tmp_path, problems.X, np.asarray(problems.real, dtype=float))
    fits = []
    for memory in ("40M", "2G"):
        model = obprox.Lasso(alpha=0.05, solver=solver, max_iter=3, tol=1e-12)
        fits.append(model.fit_files(pattern, memory=memory).coef_)
    np.testing.assert_array_equal(*fits)


def test_columns_of_a_table_have_names(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("y,age,size\n" + "".join(f"{row % 3},{row % 7},{row % 5}\n" for row in range(60)))
    model = obprox.Lasso(alpha=0.01).fit_files([path], label="y")
    assert list(model.feature_names_in_) == ["age", "size"]


def test_what_is_wrong_is_said(problems, tmp_path):
    with pytest.raises(FileNotFoundError):
        obprox.Lasso().fit_files(tmp_path / "none-*.svm")
    pattern = parts(tmp_path, problems.X, np.asarray(problems.real, dtype=float))
    for memory in ("much", "-1G", 0, "nan"):
        with pytest.raises(ValueError, match="memory"):
            obprox.Lasso().fit_files(pattern, memory=memory)
    with pytest.raises(TypeError, match="LassoCV"):
        obprox.LassoCV().fit_files(pattern)
    with pytest.raises(TypeError, match="MultiTaskLasso"):
        obprox.MultiTaskLasso().fit_files(pattern)
    (tmp_path / "part-9.csv").write_text("1,2,3\n0,1,2\n")
    with pytest.raises(ValueError, match="part-9.csv.*one kind"):
        obprox.Lasso().fit_files(tmp_path)
