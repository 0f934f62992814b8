"""Moving from scikit-learn: the same objective, the same weights. See docs/from-scikit-learn.md."""

# %% Two packages, one data set.
import time
import warnings

import numpy as np
import obprox
from scipy.sparse import random as random_sparse
from sklearn import linear_model
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

warnings.simplefilter("ignore", FutureWarning)
rng = np.random.default_rng(0)
X = random_sparse(2000, 500, density=0.05, random_state=0, format="csr")
truth = np.where(rng.random(500) < 0.05, rng.normal(size=500) * 3, 0)
real = X @ truth + 0.3 * rng.normal(size=2000)
labels = (real > 0).astype(int)


# %% Change the import, keep the parameters.
def timed(model, *data):
    began = time.perf_counter()
    model.fit(*data)
    return model, time.perf_counter() - began


def compare(name, ours, theirs, target):
    ours, our_time = timed(ours, X, target)
    theirs, their_time = timed(theirs, X, target)
    apart = np.abs(ours.coef_ - theirs.coef_).max()
    print(f"{name:20} {our_time:7.3f} s and {their_time:7.3f} s, weights {apart:.0e} apart, {ours.certificate_.nnz} of 500")
    assert apart < 1e-5


tight = {"tol": 1e-12, "max_iter": 100_000}
compare("Lasso", obprox.Lasso(alpha=0.001), linear_model.Lasso(alpha=0.001, **tight), real)
compare("ElasticNet", obprox.ElasticNet(alpha=0.002), linear_model.ElasticNet(alpha=0.002, **tight), real)
compare(
    "LogisticRegression",
    obprox.LogisticRegression(C=2, l1_ratio=1),
    linear_model.LogisticRegression(C=2, l1_ratio=1, solver="saga", tol=1e-9, max_iter=100_000),
    labels,
)

# %% Pipelines and searches are scikit-learn's own.
search = GridSearchCV(
    make_pipeline(MaxAbsScaler(), obprox.LogisticRegression()),
    {"logisticregression__C": [0.1, 1, 10], "logisticregression__l1_ratio": [0.5, 1.0]},
    cv=3,
)
search.fit(X, labels)
print("best:", search.best_params_, f"accuracy {search.best_score_:.3f}")

# %% What there is besides: at most twenty features, and a certificate for them.
few = obprox.SparseClassifier(max_features=20).fit(X, labels)
print(np.count_nonzero(few.coef_), "features, accuracy", few.score(X, labels), few.certificate_.status)
