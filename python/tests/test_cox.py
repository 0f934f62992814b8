"""Cox models against what lifelines, statsmodels and scikit-survival found (references/cox.py)."""

import json
from pathlib import Path

import numpy as np
import obprox
import pytest

KNOWN = json.loads((Path(__file__).parent / "references" / "cox.json").read_text())
X, TIME, EVENT = (np.array(KNOWN[name]) for name in ("X", "time", "event"))
WEIGHT, OFFSET = np.array(KNOWN["weight"]), np.array(KNOWN["offset"])
SIGNED = np.where(EVENT, TIME, -TIME)


@pytest.mark.parametrize("case", KNOWN["plain"], ids=lambda case: f"{case['tool']}-{case['ties']}-{case['offset']}")
def test_without_penalty_weights_are_those_of_other_tools(case):
    model = obprox.CoxPH(alpha=0.0, ties=case["ties"], tol=1e-12)
    weight, offset = WEIGHT if case["weighted"] else None, OFFSET if case["offset"] else None
    model.fit(X, SIGNED, sample_weight=weight, offset=offset)
    np.testing.assert_allclose(model.coef_, case["coef"], rtol=0, atol=2e-6)
    if weight is None:
        np.testing.assert_allclose(-model.certificate_.F * len(X), case["log_likelihood"], rtol=1e-10)
        if case["concordance"] is not None:
            np.testing.assert_allclose(model.score(X, SIGNED), case["concordance"], rtol=1e-12)


@pytest.mark.parametrize("path", KNOWN["paths"], ids=lambda path: str(path["l1_ratio"]))
def test_a_path_is_that_of_coxnet(path):
    found = obprox.path(
        X, SIGNED, loss="cox", ties="breslow", l1_ratio=path["l1_ratio"], alphas=path["alphas"], tol=1e-12
    )
    np.testing.assert_allclose(found.alphas, path["alphas"])
    np.testing.assert_allclose(found.coefs.T, path["coefs"], rtol=0, atol=5e-6)
    assert np.all(found.table["relative_gap"] <= 1e-12)


def test_concordance_is_theirs():
    from obprox import _core

    scores = np.array(KNOWN["concordance"]["scores"])
    found = _core.concordance(scores, SIGNED, np.ones(len(X)))
    assert found == pytest.approx(KNOWN["concordance"]["lifelines"], abs=1e-12)
    assert found == pytest.approx(KNOWN["concordance"]["scikit-survival"], abs=1e-12)


def test_times_come_in_any_form(tmp_path):
    structured = np.array(list(zip(EVENT, TIME)), dtype=[("seen", bool), ("days", float)])
    frame = pytest.importorskip("pandas").DataFrame({"days": TIME, "seen": EVENT})
    model = obprox.CoxPH(alpha=0.05).fit(X, SIGNED)
    assert model.intercept_ == 0.0
    for y in (structured, np.column_stack([TIME, EVENT]), frame):
        np.testing.assert_array_equal(obprox.CoxPH(alpha=0.05).fit(X, y).coef_, model.coef_)
        assert model.score(X, y) == model.score(X, SIGNED)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_)
    np.testing.assert_allclose(model.predict_partial_hazard(X), np.exp(X @ model.coef_))
    model.save(tmp_path / "model.json")
    again = obprox.load(tmp_path / "model.json")
    assert isinstance(again, obprox.CoxPH) and again.ties == "efron"
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_folds_choose_by_likelihood_or_by_order():
    for scoring, ties in (("loss", "efron"), ("concordance", "breslow")):
        model = obprox.CoxPHCV(alphas=12, scoring=scoring, ties=ties, rule="1se").fit(X, np.column_stack([TIME, EVENT]))
        assert model.loss_path_.shape == (12, 5) and np.all(np.isfinite(model.loss_path_))
        assert {0, 1} <= set(np.flatnonzero(model.coef_))
        assert model.certificate_.status == "converged"
    relaxed = obprox.CoxPHCV(alphas=12, relax=True).fit(X, SIGNED)
    assert 0 <= relaxed.gamma_ <= 1
    few = obprox.CoxPH(max_features=2).fit(X, SIGNED)
    assert np.flatnonzero(few.coef_).tolist() == [0, 1]


def test_what_is_no_time_is_said():
    fit = obprox.CoxPH().fit
    for y, said in [
        (-TIME, "every row is censored"),
        (np.where(np.arange(len(X)) == 3, 0.0, SIGNED), "the target is 0"),
        (np.column_stack([TIME, EVENT + 1]), "row 0: .*1 where the event was seen"),
        (np.column_stack([SIGNED, EVENT]), "a time is negative"),
        (np.array(list(zip(TIME, TIME)), dtype=[("a", float), ("b", float)]), "fields must be two"),
    ]:
        with pytest.raises(ValueError, match=said):
            fit(X, y)
    with pytest.raises(ValueError, match="neither 'efron' nor 'breslow'"):
        obprox.CoxPH(ties="exact").fit(X, SIGNED)
    with pytest.raises(ValueError, match="use auto"):
        obprox.CoxPH(solver="obproxsg").fit(X, SIGNED)
    with pytest.raises(TypeError, match="compares all rows"):
        obprox.CoxPH().fit_files("part-*.svm")
    with pytest.raises(ValueError, match="neither 'loss' nor 'concordance'"):
        obprox.CoxPHCV(scoring="r2").fit(X, SIGNED)
    assert not hasattr(obprox.CoxPH(solver="obproxsg"), "partial_fit")
