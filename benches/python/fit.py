"""One package on one problem in a process of its own: `fit.py PACKAGE PROBLEM TOLERANCE DATA.npz`.

Prints how long the first and the second call of `fit` took, and how far the objective is above a reference. Loading and
imports are not counted, nor is the conversion to the layout a package asks for; compiling in the first call is.
"""

import json
import sys
import time
import warnings

import numpy as np
from scipy.sparse import csr_matrix

warnings.filterwarnings("ignore")
package, problem, tolerance, source = sys.argv[1], sys.argv[2], float(sys.argv[3]), np.load(sys.argv[4])
X = csr_matrix((source["data"], source["indices"], source["indptr"]), shape=source["shape"])
y, lam = source["y"], float(source["lam"])
rows = X.shape[0]


def logistic():
    if package == "obprox":
        from obprox import LogisticRegression

        return LogisticRegression(C=1 / (lam * rows), tol=tolerance)
    if package == "scikit-learn":
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(l1_ratio=1, solver="saga", C=1 / (lam * rows), tol=tolerance, max_iter=100_000)
    if package == "skglm":
        from skglm import SparseLogisticRegression

        return SparseLogisticRegression(alpha=lam, tol=tolerance, max_iter=200, max_epochs=10_000)
    from celer import LogisticRegression

    # It has no intercept; its objective is compared with the optimum without one.
    return LogisticRegression(C=1 / (lam * rows), tol=tolerance, max_iter=200)


def lasso():
    if package == "obprox":
        from obprox import Lasso
    elif package == "scikit-learn":
        from sklearn.linear_model import Lasso
    elif package == "skglm":
        from skglm import Lasso
    else:
        from celer import Lasso
    more = {} if package == "obprox" else {"max_iter": 100_000 if package == "scikit-learn" else 200}
    return Lasso(alpha=lam, tol=tolerance, **more)


def objective(model):
    x, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]) if np.size(model.intercept_) else 0.0
    margins = X @ x + b
    loss = np.logaddexp(0, -y * margins).mean() if problem == "logistic" else 0.5 * ((y - margins) ** 2).mean()
    return loss + lam * np.abs(x).sum()


model = {"logistic": logistic, "lasso": lasso}[problem]()
# skglm and Celer work on columns.
given = X if package in ("obprox", "scikit-learn") and problem == "logistic" or package == "obprox" else X.tocsc()
seconds = []
for _ in range(2):
    begun = time.perf_counter()
    model.fit(given, y)
    seconds.append(time.perf_counter() - begun)
print(json.dumps({"first": seconds[0], "second": seconds[1], "F": objective(model)}))
