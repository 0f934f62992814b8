"""Writes cox.json: Cox models by lifelines, statsmodels and scikit-survival, which the tests hold ours to.

    pip install numpy pandas lifelines statsmodels scikit-survival && python python/tests/references/cox.py

lifelines and statsmodels maximise the partial likelihood by Newton's method, with Efron's or Breslow's ties, weights of rows
and offsets; scikit-survival goes glmnet's path: −ln L/N + α·(r‖x‖₁ + (1 − r)/2·‖x‖₂²), Breslow's ties.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from lifelines import CoxPHFitter
from lifelines.utils import concordance_index
from sksurv.linear_model import CoxnetSurvivalAnalysis
from sksurv.metrics import concordance_index_censored
from sksurv.util import Surv
from statsmodels.duration.hazard_regression import PHReg


def data():
    rng = np.random.default_rng(23)
    X = rng.normal(size=(140, 7)).round(3)
    offset = rng.uniform(-1, 1, size=140).round(3)
    hazard = np.exp(0.8 * X[:, 0] - 0.6 * X[:, 1] + 0.3 * X[:, 4] + offset)
    # Whole days: many events at one time.
    time = np.ceil(8 * rng.exponential(size=140) / hazard)
    event = rng.uniform(size=140) < 0.7
    weight = rng.integers(1, 4, size=140).astype(float)
    return X, time, event, weight, offset


def main():
    X, time, event, weight, offset = data()
    plain = []
    frame = pd.DataFrame(X).rename(columns=str).assign(time=time, event=event, weight=weight)
    for weighted in (False, True):
        fitter = CoxPHFitter()
        used = frame if weighted else frame.drop(columns="weight")
        given = {"weights_col": "weight"} if weighted else {}
        options = {"precision": 1e-14}
        fitter.fit(used, "time", "event", fit_options=options, **given)
        plain.append({"tool": "lifelines", "ties": "efron", "weighted": weighted, "offset": False,
                      "coef": list(fitter.params_), "log_likelihood": fitter.log_likelihood_,
                      "concordance": fitter.concordance_index_ if not weighted else None})
    for ties in ("efron", "breslow"):
        for shift in (None, offset):
            fit = PHReg(time, X, status=event.astype(int), ties=ties, offset=shift).fit(gtol=1e-14, maxiter=200, disp=0)
            plain.append({"tool": "statsmodels", "ties": ties, "weighted": False, "offset": shift is not None,
                          "coef": list(fit.params), "log_likelihood": fit.llf, "concordance": None})
    paths = []
    y = Surv.from_arrays(event, time)
    for ratio in (1.0, 0.5):
        alphas = [0.2, 0.1, 0.05, 0.02]
        path = CoxnetSurvivalAnalysis(l1_ratio=ratio, alphas=alphas, tol=1e-14, max_iter=1_000_000, normalize=False).fit(X, y)
        paths.append({"l1_ratio": ratio, "alphas": list(path.alphas_), "coefs": path.coef_.T.tolist()})
    scores = (X[:, 0] - 0.5 * X[:, 1]).round(1)
    orders = {"scores": list(scores), "lifelines": concordance_index(time, -scores, event),
              "scikit-survival": concordance_index_censored(event, time, scores)[0]}
    written = {"X": X.tolist(), "time": list(time), "event": event.tolist(), "weight": list(weight),
               "offset": list(offset), "plain": plain, "paths": paths, "concordance": orders}
    Path(__file__).with_suffix(".json").write_text(json.dumps(written) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
