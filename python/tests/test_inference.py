"""Standard errors of refits, against those of statsmodels (references/glm.py), and what they are worth."""

import json
from pathlib import Path

import numpy as np
import obprox
import pytest
from scipy.sparse import csr_matrix

KNOWN = json.loads((Path(__file__).parent / "references" / "glm.json").read_text())
X, OFFSET = np.array(KNOWN["X"]), np.array(KNOWN["offset"])


@pytest.mark.parametrize("case", KNOWN["errors"], ids=lambda case: case["loss"])
def test_errors_are_those_of_statsmodels(case):
    y = np.array(KNOWN["targets"][case["loss"]])
    # Free of penalty on three features and held at zero on the others: the choice is known beforehand.
    weights = np.full(X.shape[1], 100.0)
    weights[case["features"]] = 1e-6
    if case["loss"] == "logistic":
        model = obprox.SparseClassifier(alpha=1.0, penalty_weights=weights)
    else:
        model = obprox.SparseRegressor(case["loss"], alpha=1.0, penalty_weights=weights, theta=KNOWN["theta"])
    model.fit(X, y, offset=OFFSET)
    for rows in (X, csr_matrix(X)):
        found = obprox.refit(model, rows, y, offset=OFFSET, confidence=0.9)
        assert found.features.tolist() == [-1, *case["features"]] and found.names[1:] == ["x0", "x1", "x4"]
        np.testing.assert_allclose(found.coef, case["coef"], atol=1e-6)
        np.testing.assert_allclose(found.standard_error, case["errors"], rtol=1e-5)
        np.testing.assert_allclose(np.c_[found.low, found.high], case["interval"], atol=1e-5)
        np.testing.assert_allclose(found.p_value, case["p"], atol=1e-6)
        assert found.note.startswith("naive") and "split=True" in found.note
    margins = X[:, case["features"]] @ found.coef[1:] + found.coef[0] + OFFSET
    np.testing.assert_allclose(np.ravel(found.model._margins(X, OFFSET)), margins, atol=1e-9)


def test_honest_intervals_hold_the_weights_and_naive_ones_do_not():
    """Nothing but noise: whatever is chosen has the weight 0. Honest 90 % intervals hold it in nine of ten cases."""
    rng = np.random.default_rng(5)
    held = {True: [], False: []}
    for _ in range(40):
        X, y = rng.normal(size=(120, 60)), rng.normal(size=120)
        for split in held:
            model = obprox.Lasso(alpha=0.17)
            if not split:
                model.fit(X, y)
            found = obprox.refit(model, X, y, split=split, confidence=0.9)
            held[split] += ((found.low <= 0) & (0 <= found.high))[1:].tolist()
    assert len(held[True]) > 100 and abs(np.mean(held[True]) - 0.9) < 0.08
    assert np.mean(held[False]) < 0.6, "the errors of a refit to the rows that chose are too small"


def test_names_tables_and_refusals():
    import pandas as pd

    y = np.array(KNOWN["targets"]["squared"])
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    model = obprox.Lasso(alpha=0.2).fit(frame, y)
    found = obprox.refit(model, frame, y)
    assert list(found.table["feature"]) == found.names and found.names[:2] == ["intercept", "a"]
    assert "naive" in found._repr_html_()
    none = obprox.refit(obprox.Lasso(alpha=100.0).fit(X, y), X, y)
    assert none.names == ["intercept"] and np.isclose(none.coef[0], y.mean())
    with pytest.raises(ValueError, match="confidence"):
        obprox.refit(model, frame, y, confidence=95)
    with pytest.raises(ValueError, match="huber"):
        obprox.refit(obprox.SparseRegressor("huber").fit(X, y), X, y)
    with pytest.raises(ValueError, match="collinear"):
        twice = np.c_[X[:, 0], X[:, 0]]
        obprox.refit(obprox.ElasticNet(alpha=0.1).fit(twice, y), twice, y)
    with pytest.raises(ValueError, match="no optimum"):
        classes = X[:, 0] > 0
        obprox.refit(obprox.LogisticRegression().fit(X, classes), X, classes)
    with pytest.raises(ValueError, match="not fitted"):
        obprox.refit(obprox.Lasso(), X, y)
