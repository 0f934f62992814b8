"""Rows that come a part at a time, and refits without penalty."""

import numpy as np
import obprox
import pytest
from obprox.solvers import RDA, OBProxSG, ProxSG, ProxSVRG

RNG = np.random.default_rng(5)
X = RNG.normal(size=(240, 12))
Y = X[:, 0] - 2 * X[:, 1] + 0.3 * RNG.normal(size=240)
LABELS = np.where(Y > 0, "yes", "no")
MANY = np.digitize(Y, [-1, 1])


@pytest.mark.parametrize("solver", [ProxSG(step=0.03), OBProxSG(n_p=3, n_o=2, step=0.03), ProxSVRG(step=0.03), ProxSG(step=0.1, schedule="1/k")])
def test_calls_on_all_rows_are_the_epochs_of_a_fit(solver):
    """To the last digits: between two calls the weights alone are handed on."""
    for make, y, more in (
        (obprox.SparseRegressor, Y, {}),
        (obprox.SparseClassifier, LABELS, {"classes": ["no", "yes"]}),
        (obprox.SparseClassifier, MANY, {"classes": [0, 1, 2]}),
    ):
        whole = make(alpha=0.01, solver=solver, max_iter=7, tol=0.0)
        with pytest.warns(obprox.ConvergenceWarning):
            whole.fit(X, y)
        parts = make(alpha=0.01, solver=solver)
        for _ in range(7):
            parts.partial_fit(X, y, **more)
        np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(parts.coef_ == 0, whole.coef_ == 0)
        np.testing.assert_allclose(parts.intercept_, whole.intercept_, rtol=1e-9)
        assert np.ravel(parts.n_iter_)[0] == 7


def test_parts_may_lack_classes_and_lead_to_the_optimum():
    model = obprox.LogisticRegression(C=1.0, solver=ProxSG(step=0.05, schedule="constant"))
    order = np.argsort(Y)
    for _ in range(40):
        # Sorted by class: whole parts are of one class.
        for part in np.array_split(order, 6):
            model.partial_fit(X[part], LABELS[part], classes=["no", "yes"])
    assert model.classes_.tolist() == ["no", "yes"] and model.score(X, LABELS) > 0.7
    assert model.predict_proba(X[:3]).shape == (3, 2)
    many = obprox.SparseClassifier(solver=OBProxSG(step=0.1), alpha=0.01)
    for part in np.array_split(np.argsort(Y), 4):
        many.partial_fit(X[part], MANY[part], classes=[0, 1, 2])
    assert many.coef_.shape == (3, 12)


def test_what_cannot_come_in_parts_is_said():
    for model in (obprox.Lasso(), obprox.Lasso(solver=RDA()), obprox.LassoCV(solver="prox-sg"), obprox.MultiTaskLasso(solver="prox-sg")):
        assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as error:
        obprox.Lasso().partial_fit(X, Y)
    assert "learns from all rows at once" in str(error.value.__cause__ or error.value)
    steps = {"solver": ProxSG(step=0.1)}
    with pytest.raises(ValueError, match="first call"):
        obprox.SparseClassifier(**steps).partial_fit(X, LABELS)
    with pytest.raises(ValueError, match="none of the classes"):
        obprox.SparseClassifier(**steps).partial_fit(X, LABELS, classes=["no", "maybe"])
    with pytest.raises(ValueError, match="'balanced' takes all rows"):
        obprox.SparseClassifier(class_weight="balanced", **steps).partial_fit(X, LABELS, classes=["no", "yes"])
    with pytest.raises(ValueError, match="max_features"):
        obprox.SparseRegressor(max_features=2, **steps).partial_fit(X, Y)
    with pytest.raises(ValueError, match="checkpoint"):
        obprox.Lasso(checkpoint="state", **steps).partial_fit(X, Y)
    model = obprox.Lasso(**steps).partial_fit(X, Y)
    with pytest.raises(ValueError, match="12 features"):
        model.partial_fit(X[:, :5], Y)


def test_refits_are_least_squares_on_the_support():
    found = obprox.path(X, Y, alphas=[0.5, 0.05], relax=True, tol=1e-10)
    for at in range(2):
        on = np.flatnonzero(found.coef(at))
        design = np.column_stack([X[:, on], np.ones(len(X))])
        expected = np.linalg.lstsq(design, Y, rcond=None)[0]
        np.testing.assert_allclose(found.relaxed.coef(at)[on], expected[:-1], atol=1e-6)
        np.testing.assert_allclose(found.relaxed.intercepts[at], expected[-1], atol=1e-6)
        assert np.count_nonzero(found.relaxed.coef(at)) == len(on)
    assert obprox.path(X, Y, alphas=3).relaxed is None


@pytest.mark.parametrize(
    "model, y",
    [
        (obprox.LassoCV(alphas=15, relax=True), Y),
        (obprox.ElasticNetCV(l1_ratio=[0.5, 1.0], alphas=8, relax=True), Y),
        (obprox.SparseRegressorCV("huber", alphas=8, relax=True), Y),
        (obprox.LogisticRegressionCV(Cs=[0.02, 0.1], scoring="neg_log_loss", relax=True), LABELS),
        (obprox.SparseClassifierCV(alphas=8, relax=True), MANY),
    ],
)
def test_folds_choose_a_blend(model, y):
    model.fit(X, y)
    assert model.gamma_ in (0.0, 0.25, 0.5, 0.75, 1.0)
    plain = type(model)(**{**model.get_params(), "relax": False}).fit(X, y)
    assert plain.gamma_ == 1.0
    tables = [getattr(one, "mse_path_", getattr(one, "loss_path_", None)) for one in (model, plain)]
    if tables[0] is not None:
        assert tables[0].mean(axis=-1).min() <= tables[1].mean(axis=-1).min()


def test_strong_features_are_refitted_without_shrinkage():
    model = obprox.LassoCV(alphas=30, relax=True).fit(X, Y)
    assert model.gamma_ < 1
    np.testing.assert_allclose(model.coef_[:2], [1, -2], atol=0.06)
    with pytest.raises(ValueError, match="no refit without it"):
        obprox.LassoCV(relax=True, positive=True).fit(X, Y)
    with pytest.raises(ValueError, match="scoring: with relax"):
        obprox.SparseRegressorCV(relax=True, scoring="max_error").fit(X, Y)
