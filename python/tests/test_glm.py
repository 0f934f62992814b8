"""Gamma, Tweedie and negative binomial losses, and offsets, against what other tools found (references/glm.py)."""

import json
from pathlib import Path

import exact
import numpy as np
import obprox
import pytest

KNOWN = json.loads((Path(__file__).parent / "references" / "glm.json").read_text())
X, OFFSET = np.array(KNOWN["X"]), np.array(KNOWN["offset"])


def target(loss):
    return np.array(KNOWN["targets"][loss])


def estimator(loss, **given):
    if loss == "logistic":
        return exact.SparseClassifier(loss, **given)
    return exact.SparseRegressor(loss, power=KNOWN["power"], theta=KNOWN["theta"], **given)


@pytest.mark.parametrize(
    "case", KNOWN["cases"], ids=lambda case: f"{case['loss']}-{case['offset']}-{case['alpha']}-{case['l1_ratio']}"
)
def test_weights_are_those_of_other_tools(case):
    model = estimator(case["loss"], alpha=case["alpha"], l1_ratio=case["l1_ratio"])
    model.fit(X, target(case["loss"]), offset=OFFSET if case["offset"] else None)
    assert model.certificate_.relative_gap <= 1e-11
    np.testing.assert_allclose(np.ravel(model.coef_), case["coef"], rtol=0, atol=2e-5)
    np.testing.assert_allclose(np.ravel(model.intercept_), case["intercept"], rtol=0, atol=2e-5)


def test_predictions_go_with_their_offsets(tmp_path):
    model = estimator("gamma", alpha=0.05).fit(X, target("gamma"), offset=OFFSET)
    expected = np.exp(X @ model.coef_ + model.intercept_ + OFFSET)
    np.testing.assert_allclose(model.predict(X, offset=OFFSET), expected)
    with pytest.raises(ValueError, match="offset: this SparseRegressor was fitted with offsets"):
        model.predict(X)
    model.save(tmp_path / "model.json")
    again = obprox.load(tmp_path / "model.json")
    np.testing.assert_allclose(again.predict(X, offset=OFFSET), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="fitted with offsets"):
        again.predict(X)
    with pytest.raises(ValueError, match="fitted without offsets"):
        model.fit(X, target("gamma")).predict(X, offset=OFFSET)
    classes = obprox.LogisticRegression().fit(X, target("logistic"), offset=OFFSET)
    margins = X @ classes.coef_[0] + classes.intercept_ + OFFSET
    np.testing.assert_allclose(classes.decision_function(X, OFFSET), margins)
    np.testing.assert_allclose(classes.predict_proba(X, OFFSET)[:, 1], 1 / (1 + np.exp(-margins)))


def test_parameters_of_losses_come_back_from_files(tmp_path):
    for loss, name, value in (("tweedie", "power", 1.4), ("negative-binomial", "theta", 2.0), ("huber", "delta", 0.7)):
        y = target("squared" if loss == "huber" else loss)
        obprox.SparseRegressor(loss, **{name: value}).fit(X, y).save(tmp_path / "model.json")
        assert getattr(obprox.load(tmp_path / "model.json"), name) == value


def test_paths_and_folds_take_offsets():
    y = target("poisson")
    found = obprox.path(X, y, loss="poisson", alphas=[0.1, 0.05], offset=OFFSET, tol=1e-11)
    known = [case for case in KNOWN["cases"] if case["loss"] == "poisson" and case["offset"] and case["alpha"] == 0.05]
    np.testing.assert_allclose(found.coef(1), known[0]["coef"], atol=2e-5)
    with_offset = obprox.SparseRegressorCV("poisson", alphas=5).fit(X, y, offset=OFFSET)
    without = obprox.SparseRegressorCV("poisson", alphas=5).fit(X, y)
    assert with_offset.loss_path_.mean(axis=1).min() < without.loss_path_.mean(axis=1).min()
    with pytest.raises(ValueError, match="scoring: with offsets"):
        obprox.SparseRegressorCV("poisson", alphas=5, scoring="max_error").fit(X, y, offset=OFFSET)


def test_refusals():
    with pytest.raises(ValueError, match="row 1: the target is 0; the gamma loss is for positive numbers"):
        obprox.SparseRegressor("gamma").fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="negative"):
        obprox.SparseRegressor("tweedie").fit(X, -np.ones(len(X)))
    with pytest.raises(ValueError, match="power: must lie between 1 and 2"):
        obprox.SparseRegressor("tweedie", power=2.0).fit(X, target("tweedie"))
    with pytest.raises(ValueError, match="theta: must be a positive"):
        obprox.SparseRegressor("negative-binomial", theta=0).fit(X, target("poisson"))
    with pytest.raises(ValueError, match="offset"):
        obprox.Lasso().fit(X, target("squared"), offset=OFFSET[:5])
    with pytest.raises(ValueError, match="offset: several classes"):
        obprox.LogisticRegression().fit(X, np.arange(len(X)) % 3, offset=OFFSET)
