"""The same objective, the same weights: every estimator against scikit-learn's, converged tightly.

Where scikit-learn has no estimator for an objective, a slow and obvious proximal gradient method stands in.
"""

import warnings

import exact
import numpy as np
import pytest
import sklearn.linear_model as sk
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

AGREE = 1e-5

weighted = pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
#: With and without weights and intercept.
cases = pytest.mark.parametrize(
    ("weighted", "fit_intercept"), [(False, True), (True, True), (True, False)], ids=["plain", "weights", "no-intercept"]
)


def same(ours, theirs):
    assert np.shape(ours.coef_) == np.shape(theirs.coef_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=AGREE)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=AGREE)
    assert np.any(ours.coef_ != 0), "a problem whose answer is zero tells nothing"


def quietly(estimator, *args, **kwargs):
    """scikit-learn warns of names that come and go."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return estimator.fit(*args, **kwargs)


@cases
@pytest.mark.parametrize("sparse", [False, True], ids=["", "sparse"])
def test_least_squares(problems, weighted, fit_intercept, sparse):
    X = csr_matrix(problems.X) if sparse else problems.X
    given = {"sample_weight": problems.weights if weighted else None}
    tight = {"fit_intercept": fit_intercept, "tol": 1e-14, "max_iter": 100_000}
    ours = exact.Lasso(alpha=0.05, fit_intercept=fit_intercept).fit(X, problems.real, **given)
    same(ours, sk.Lasso(alpha=0.05, **tight).fit(X, problems.real, **given))
    ours = exact.ElasticNet(alpha=0.05, l1_ratio=0.3, fit_intercept=fit_intercept).fit(X, problems.real, **given)
    same(ours, sk.ElasticNet(alpha=0.05, l1_ratio=0.3, **tight).fit(X, problems.real, **given))


def test_several_targets(problems):
    y = np.column_stack([problems.real, -2 * problems.real, problems.counts])
    ours = exact.Lasso(alpha=0.05).fit(problems.X, y)
    same(ours, sk.Lasso(alpha=0.05, tol=1e-14, max_iter=100_000).fit(problems.X, y))
    np.testing.assert_allclose(ours.predict(problems.X)[:, 0], exact.Lasso(0.05).fit(problems.X, y[:, 0]).predict(problems.X))
    assert ours.certificate_.status == "converged" and set(ours.trace_["output"]) == {0, 1, 2}


@cases
@pytest.mark.parametrize("l1_ratio", [1.0, 0.4, 0.0])
@pytest.mark.parametrize("target", ["binary", "classes"])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 1: 0.5}], ids=["", "balanced", "dict"])
def test_logistic(problems, weighted, fit_intercept, l1_ratio, target, class_weight):
    y, given = getattr(problems, target), {"sample_weight": problems.weights if weighted else None}
    common = {"C": 0.3, "l1_ratio": l1_ratio, "fit_intercept": fit_intercept, "class_weight": class_weight}
    ours = exact.LogisticRegression(**common).fit(problems.X, y, **given)
    solver = {"solver": "saga", "max_iter": 100_000} if l1_ratio > 0 else {"solver": "newton-cg", "max_iter": 1000}
    if target == "classes" and l1_ratio > 0:
        common, given = gently(common, y, **given)
    theirs = quietly(sk.LogisticRegression(**common, **solver, tol=1e-10), problems.X, y, **given)
    same(ours, theirs)
    np.testing.assert_allclose(ours.predict_proba(problems.X), theirs.predict_proba(problems.X), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(problems.X), theirs.predict(problems.X))


def gently(common, y, sample_weight):
    """The same problem with weights of at most 1: the steps of scikit-learn's saga are too long for larger ones."""
    weights = compute_sample_weight(common["class_weight"], y) if common["class_weight"] != "balanced" else None
    if weights is None:
        classes = np.unique(y)
        weights = compute_class_weight("balanced", classes=classes, y=y, sample_weight=sample_weight)[y]
    weights = weights if sample_weight is None else weights * sample_weight
    common = {**common, "class_weight": None, "C": common["C"] * weights.max()}
    return common, {"sample_weight": weights / weights.max()}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"penalty": "l1"}, {"l1_ratio": 1.0}),
        ({"penalty": "l2"}, {"l1_ratio": 0.0}),
        ({"penalty": "elasticnet", "l1_ratio": 0.5}, {"l1_ratio": 0.5}),
        ({"penalty": None}, {"C": np.inf}),
        ({"penalty": "l1", "solver": "liblinear"}, {}),
    ],
)
def test_both_ways_of_naming_a_penalty(problems, old, new):
    old, new = (exact.LogisticRegression(**given).fit(problems.X, problems.binary) for given in (old, new))
    np.testing.assert_array_equal(old.coef_, new.coef_)


@weighted
@pytest.mark.parametrize("target", ["binary", "classes"])
def test_squared_hinge_is_the_support_vector_machine(problems, weighted, target):
    y, weights = getattr(problems, target), problems.weights if weighted else None
    # liblinear penalises its intercept, so that only the problem without one is the same.
    total = len(y) if weights is None else weights.sum()
    ours = exact.SparseClassifier("squared-hinge", alpha=1 / (0.1 * total), fit_intercept=False)
    theirs = LinearSVC(penalty="l1", dual=False, C=0.1, fit_intercept=False, tol=1e-9, max_iter=1_000_000)
    same(ours.fit(problems.X, y, weights), theirs.fit(problems.X, y, weights))


@cases
def test_poisson(problems, weighted, fit_intercept):
    given = {"sample_weight": problems.weights if weighted else None}
    ours = exact.SparseRegressor("poisson", alpha=0.1, l1_ratio=0.0, fit_intercept=fit_intercept)
    theirs = sk.PoissonRegressor(alpha=0.1, fit_intercept=fit_intercept, tol=1e-10, solver="newton-cholesky", max_iter=1000)
    ours, theirs = (model.fit(problems.X, problems.counts, **given) for model in (ours, theirs))
    same(ours, theirs)
    np.testing.assert_allclose(ours.predict(problems.X), theirs.predict(problems.X), rtol=1e-5)


DERIVATIVES = {
    "squared": lambda m, y: m - y,
    "huber": lambda m, y: np.clip(m - y, -1.345, 1.345),
    "poisson": lambda m, y: np.exp(m) - y,
    "logistic": lambda m, y: expit(m) - y,
    "squared-hinge": lambda m, y: -2 * (2 * y - 1) * np.maximum(1 - (2 * y - 1) * m, 0),
}


class Slow:
    """Proximal gradient steps until nothing moves; the weights of the rows scaled to sum to 1."""

    def __init__(self, loss, alpha, l1_ratio, fit_intercept, steps=60_000, size=0.03):
        self.slope, self.l1, self.l2 = DERIVATIVES[loss], alpha * l1_ratio, alpha * (1 - l1_ratio)
        self.fit_intercept, self.steps, self.size = fit_intercept, steps, size

    def fit(self, X, y, weights):
        weights = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
        x, b = np.zeros(X.shape[1]), 0.0
        for _ in range(self.steps):
            slope = weights * self.slope(X @ x + b, y)
            before = x, b
            trial = x - self.size * (X.T @ slope + self.l2 * x)
            x = np.sign(trial) * np.maximum(np.abs(trial) - self.size * self.l1, 0)
            b -= self.size * slope.sum() * self.fit_intercept
            if max(np.abs(x - before[0]).max(), abs(b - before[1])) < 1e-10:
                break
        self.coef_, self.intercept_ = x, b
        return self


@cases
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("loss", ["squared", "huber", "poisson", "logistic", "squared-hinge"])
def test_every_loss_against_plain_proximal_steps(problems, loss, l1_ratio, weighted, fit_intercept):
    y = {"poisson": problems.counts, "logistic": problems.binary, "squared-hinge": problems.binary}.get(loss, problems.real)
    weights = problems.weights if weighted else None
    kind = exact.SparseClassifier if loss in ("logistic", "squared-hinge") else exact.SparseRegressor
    ours = kind(loss, alpha=0.05, l1_ratio=l1_ratio, fit_intercept=fit_intercept).fit(problems.X, y, weights)
    slow = Slow(loss, 0.05, l1_ratio, fit_intercept).fit(problems.X, y, weights)
    np.testing.assert_allclose(np.ravel(ours.coef_), slow.coef_, rtol=0, atol=AGREE)
    np.testing.assert_allclose(np.ravel(ours.intercept_), slow.intercept_, rtol=0, atol=AGREE)


@cases
def test_lasso_and_elastic_net_by_cross_validation(problems, weighted, fit_intercept):
    given = {"sample_weight": problems.weights if weighted else None}
    tight = {"fit_intercept": fit_intercept, "tol": 1e-12, "max_iter": 100_000}
    ours = exact.LassoCV(fit_intercept=fit_intercept, alphas=30).fit(problems.X, problems.real, **given)
    theirs = sk.LassoCV(alphas=30, **tight).fit(problems.X, problems.real, **given)
    same_search(ours, theirs)
    ratios = [0.2, 0.7, 1.0]
    ours = exact.ElasticNetCV(l1_ratio=ratios, alphas=10, fit_intercept=fit_intercept)
    theirs = sk.ElasticNetCV(l1_ratio=ratios, alphas=10, **tight)
    ours, theirs = (model.fit(problems.X, problems.real, **given) for model in (ours, theirs))
    same_search(ours, theirs)
    assert ours.l1_ratio_ == theirs.l1_ratio_


def same_search(ours, theirs):
    np.testing.assert_allclose(ours.alphas_, theirs.alphas_, rtol=1e-10)
    np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-5)
    np.testing.assert_allclose(ours.alpha_, theirs.alpha_, rtol=1e-10)
    same(ours, theirs)


@weighted
@pytest.mark.parametrize(
    ("target", "class_weight", "scoring"),
    [
        ("binary", None, "accuracy"),
        ("binary", "balanced", "neg_log_loss"),
        ("binary", None, "matthews_corrcoef"),
        ("classes", None, "neg_log_loss"),
    ],
)
def test_logistic_by_cross_validation(problems, weighted, target, scoring, class_weight):
    y, given = getattr(problems, target), {"sample_weight": problems.weights if weighted else None}
    common = {"Cs": [0.15, 0.5, 2.0], "l1_ratios": [0.5, 1.0], "cv": 3, "scoring": scoring, "class_weight": class_weight}
    ours = exact.LogisticRegressionCV(**common).fit(problems.X, y, **given)
    theirs = sk.LogisticRegressionCV(**common, solver="saga", tol=1e-9, max_iter=100_000, use_legacy_attributes=False)
    theirs = quietly(theirs, problems.X, y, **given)
    np.testing.assert_allclose(ours.scores_, theirs.scores_, atol=1e-5)
    assert ours.C_[0] == theirs.C_ and ours.l1_ratio_[0] == theirs.l1_ratio_
    same(ours, theirs)


@weighted
@pytest.mark.parametrize("loss", ["logistic", "squared-hinge", "squared", "huber", "poisson"])
def test_the_other_cross_validations_are_fits_to_the_folds(problems, loss, weighted):
    """Each fold's fit and score done by hand, with the estimator that has no cross-validation."""
    classifies = loss in ("logistic", "squared-hinge")
    y = problems.classes if classifies else problems.counts if loss == "poisson" else problems.real
    weights = problems.weights if weighted else None
    alphas, folds = [0.2, 0.05, 0.01], [(np.arange(40, 160), np.arange(40)), (np.arange(100), np.arange(100, 160))]
    many, one = (exact.SparseClassifierCV, exact.SparseClassifier) if classifies else (exact.SparseRegressorCV, exact.SparseRegressor)
    scoring = "accuracy" if classifies else "r2"
    found = many(loss, alphas=alphas, cv=folds, scoring=scoring).fit(problems.X, y, weights)
    part = lambda rows: (problems.X[rows], y[rows], None if weights is None else weights[rows])
    expected = [
        [-one(loss, alpha=alpha).fit(*part(train)).score(*part(test)) for train, test in folds] for alpha in alphas
    ]
    np.testing.assert_allclose(found.loss_path_, expected, atol=1e-6)
    best = alphas[int(np.argmin(np.mean(expected, axis=1)))]
    assert found.alpha_ == best
    same(found, one(loss, alpha=best).fit(problems.X, y, weights))


def test_a_path_is_its_fits(problems):
    found = exact.path(problems.X, problems.real, alphas=8, l1_ratio=0.6)
    alphas, coefs, _ = sk.enet_path(problems.X - problems.X.mean(0), problems.real - problems.real.mean(), l1_ratio=0.6, alphas=found.alphas, tol=1e-12)
    np.testing.assert_allclose(found.alphas, alphas)
    np.testing.assert_allclose(found.coefs, coefs, atol=AGREE)
    classes = exact.path(problems.X, problems.classes, loss="logistic", alphas=5)
    assert classes.coefs.shape == (3, problems.X.shape[1], 5) and classes.intercepts.shape == (3, 5)
    one = exact.SparseClassifier(alpha=classes.alphas[3]).fit(problems.X, problems.classes)
    np.testing.assert_allclose(classes.coef(3), one.coef_, atol=AGREE)


@pytest.mark.parametrize("criterion", ["aic", "bic"])
@pytest.mark.parametrize("noise_variance", [None, 0.8])
def test_information_criteria(problems, criterion, noise_variance):
    theirs = sk.LassoLarsIC(criterion, noise_variance=noise_variance).fit(problems.X, problems.real)
    # They look at the corners of the path; beside a corner the number of weights is not one that both see.
    corners = theirs.alphas_[:-1]
    ours = exact.LassoIC(criterion, alphas=corners, noise_variance=noise_variance).fit(problems.X, problems.real)
    np.testing.assert_allclose(ours.noise_variance_, theirs.noise_variance_, rtol=1e-6)
    np.testing.assert_allclose(ours.criterion_, theirs.criterion_[:-1], atol=np.log(len(problems.X)) * 1.01)
    assert ours.alpha_ == ours.alphas_[ours.criterion_.argmin()]
    middle = (corners[:-1] + corners[1:]) / 2
    between = exact.LassoIC(criterion, alphas=middle, noise_variance=noise_variance).fit(problems.X, problems.real)
    counts = np.array([np.count_nonzero(exact.Lasso(alpha).fit(problems.X, problems.real).coef_) for alpha in middle])
    residuals = [problems.real - exact.Lasso(alpha).fit(problems.X, problems.real).predict(problems.X) for alpha in middle]
    variance, n_rows = theirs.noise_variance_, len(problems.X)
    cost = 2 if criterion == "aic" else np.log(n_rows)
    squares = np.array([residual @ residual for residual in residuals])
    expected = n_rows * np.log(2 * np.pi * variance) + squares / variance + cost * counts
    np.testing.assert_allclose(between.criterion_, expected, rtol=1e-6)
