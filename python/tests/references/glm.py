"""Writes glm.json: penalised fits by statsmodels and scikit-learn, which the tests hold ours to.

    pip install numpy statsmodels scikit-learn && python python/tests/references/glm.py

statsmodels minimises −lnL/N + α·(r‖x‖₁ + (1 − r)/2·‖x‖₂²) by coordinate descent, offsets included.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import statsmodels.api as sm
from sklearn import linear_model


def data():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(120, 8)).round(3)
    offset = rng.uniform(-1, 1, size=120).round(3)
    score = 0.2 + X[:, 0] * 0.6 - X[:, 1] * 0.4 + X[:, 4] * 0.3 + offset
    mean = np.exp(score)
    return X, offset, {
        "poisson": rng.poisson(mean).astype(float),
        "negative-binomial": rng.negative_binomial(2.0, 2.0 / (2.0 + mean)).astype(float),
        "gamma": rng.gamma(2.0, mean / 2.0).round(4) + 1e-3,
        "tweedie": (rng.gamma(1.5, 1.0, size=120) * rng.poisson(mean)).round(4),
        "logistic": (rng.logistic(size=120) + score > 0).astype(float),
        "squared": (score + rng.normal(size=120)).round(4),
    }


FAMILIES = {
    "poisson": sm.families.Poisson(),
    "negative-binomial": sm.families.NegativeBinomial(alpha=1 / 2.0),
    "gamma": sm.families.Gamma(link=sm.families.links.Log()),
    "logistic": sm.families.Binomial(),
    "squared": sm.families.Gaussian(),
}


def main():
    X, offset, targets = data()
    design = sm.add_constant(X)
    cases = []
    for loss, family in FAMILIES.items():
        for shift in (None, offset):
            for alpha, ratio in ((0.0, 1.0), (0.05, 1.0), (0.1, 0.5)):
                model = sm.GLM(targets[loss], design, family=family, offset=shift)
                # The constant is not penalised.
                strengths = np.r_[0.0, np.full(X.shape[1], alpha)]
                fit = model.fit_regularized(alpha=strengths, L1_wt=ratio, cnvrg_tol=1e-13, maxiter=5000)
                # It leaves a weight at zero that it once set there: what is no optimum is no reference.
                slopes = np.abs(model.score(fit.params)[1:]) / len(X)
                if np.any(slopes[fit.params[1:] == 0] > alpha * ratio + 1e-6):
                    continue
                cases.append({"loss": loss, "offset": shift is not None, "alpha": alpha, "l1_ratio": ratio,
                              "tool": "statsmodels", "intercept": fit.params[0], "coef": list(fit.params[1:])})
    for loss, kind in {"gamma": linear_model.GammaRegressor, "tweedie": linear_model.TweedieRegressor}.items():
        more = {"power": 1.4, "link": "log"} if loss == "tweedie" else {}
        fit = kind(alpha=0.1, solver="newton-cholesky", tol=1e-12, max_iter=1000, **more).fit(X, targets[loss])
        cases.append({"loss": loss, "offset": False, "alpha": 0.1, "l1_ratio": 0.0, "tool": "scikit-learn",
                      "intercept": fit.intercept_, "coef": list(fit.coef_)})
    # The errors of plain fits to three of the features.
    errors = []
    for loss, family in FAMILIES.items():
        fit = sm.GLM(targets[loss], design[:, [0, 1, 2, 5]], family=family, offset=offset).fit(tol=1e-12)
        errors.append({"loss": loss, "features": [0, 1, 4], "coef": list(fit.params), "errors": list(fit.bse),
                       "interval": fit.conf_int(0.1).tolist(), "p": list(fit.pvalues)})
    written = {"X": X.tolist(), "offset": offset.tolist(), "targets": {k: v.tolist() for k, v in targets.items()},
               "power": 1.4, "theta": 2.0, "cases": cases, "errors": errors}
    Path(__file__).with_suffix(".json").write_text(json.dumps(written) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
