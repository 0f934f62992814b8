"""What glmnet has beyond penalised fits, against what glmnet found (references/glmnet.R)."""

import json
from pathlib import Path

import exact
import numpy as np
import obprox
import pytest

KNOWN = json.loads((Path(__file__).parent / "references" / "glmnet.json").read_text())
X = np.array(KNOWN["X"])
CASES = KNOWN["cases"]


def named(case):
    return "-".join([case["what"], case["loss"], *(str(case["given"][name]) for name in ("weights", "gamma") if name in case["given"])])


def close(coef, intercept, case):
    """A softmax is the same whatever all its intercepts have in common; glmnet's refits end a little early."""
    atol = 2e-5 if case["what"] == "relaxed" else 2e-6
    np.testing.assert_allclose(np.atleast_2d(coef), case["coef"], rtol=0, atol=atol)
    if case["intercept"]:
        apart = np.ravel(intercept) - np.mean(intercept) if len(case["intercept"]) > 1 else np.ravel(intercept)
        known = np.array(case["intercept"])
        known = known - known.mean() if len(known) > 1 else known
        np.testing.assert_allclose(apart, known, rtol=0, atol=atol)


@pytest.mark.parametrize("case", [case for case in CASES if "path" not in case["given"]], ids=named)
def test_fits(case):
    given, loss = dict(case["given"]), case["loss"]
    to_fit = {}
    if given.pop("offset", False):
        to_fit["offset"] = KNOWN["offset"]
    if given.pop("weights", False):
        to_fit["sample_weight"] = KNOWN["weights"]
    if loss == "cox":
        model = exact.CoxPH(alpha=case["lambda"], **given)
        model.fit(X, np.where(KNOWN["event"], KNOWN["days"], np.negative(KNOWN["days"])), **to_fit)
        close(model.coef_, [], case)
        return
    if "groups" in given:
        given["group_weights"] = "one"
    if loss in ("logistic", "softmax"):
        model = exact.SparseClassifier(alpha=case["lambda"], **given)
    else:
        model = exact.SparseRegressor(loss, theta=2.0, alpha=case["lambda"], **given)
    model.fit(X, KNOWN["targets"][loss], **to_fit)
    assert model.certificate_.status == "converged"
    close(model.coef_, model.intercept_, case)


@pytest.mark.parametrize("case", [case for case in CASES if "path" in case["given"]], ids=named)
def test_paths(case):
    given, at = case["given"], case["lambda"]
    relax = "gamma" in given
    found = obprox.path(X, KNOWN["targets"][case["loss"]], loss=case["loss"], alphas=given["path"], relax=relax, tol=1e-12)
    coef, intercept = found.coef_at(at)
    if relax:
        refit, share = found.relaxed.coef_at(at), given["gamma"]
        coef, intercept = (share * one + (1 - share) * other for one, other in zip((coef, intercept), refit))
    close(coef, intercept, case)


def test_every_row_of_glmnets_is_there():
    kinds = {case["what"] for case in CASES}
    assert kinds >= {"offset", "bounds", "positive", "grouped classes", "breslow", "between", "relaxed"}, kinds
