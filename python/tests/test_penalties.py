"""Bounded and grouped weights: against scikit-learn where it has them, else against a slow and obvious method."""

import exact
import numpy as np
import obprox
import pytest
import sklearn.linear_model as sk
from scipy.sparse import csr_matrix

AGREE = 1e-6
TIGHT = {"tol": 1e-14, "max_iter": 100_000}


@pytest.mark.parametrize("sparse", [False, True], ids=["", "sparse"])
def test_positive_weights_are_those_of_scikit_learn(problems, sparse):
    X = csr_matrix(problems.X) if sparse else problems.X
    pairs = [
        (exact.Lasso(alpha=0.02, positive=True), sk.Lasso(alpha=0.02, positive=True, **TIGHT)),
        (exact.ElasticNet(alpha=0.05, positive=True), sk.ElasticNet(alpha=0.05, positive=True, **TIGHT)),
        (exact.SparseRegressor(alpha=0.02, positive=True), sk.Lasso(alpha=0.02, positive=True, **TIGHT)),
        (exact.SparseRegressor(alpha=0.02, bounds=(0, np.inf)), sk.Lasso(alpha=0.02, positive=True, **TIGHT)),
    ]
    for ours, theirs in pairs:
        ours.fit(X, problems.real)
        theirs.fit(problems.X, problems.real)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=AGREE)
        assert (ours.coef_ >= 0).all() and (ours.coef_ > 0).any() and ours.certificate_.status == "converged"
    assert (exact.Lasso(alpha=0.02).fit(X, problems.real).coef_ < 0).any(), "nothing had to be held"


def test_positive_weights_are_chosen_by_cross_validation(problems):
    found = obprox.LassoCV(alphas=8, positive=True).fit(problems.X, problems.real)
    assert (found.coef_ >= 0).all() and found.mse_path_.shape == (8, 5)
    weak = obprox.path(problems.X, problems.real, alphas=5, bounds=(-0.1, 0.1))
    assert np.abs(weak.coefs).max() == 0.1


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_multi_task_models_are_those_of_scikit_learn(problems, fit_intercept):
    Y = np.column_stack([problems.real, problems.counts, problems.X[:, 0] - problems.X[:, 1]])
    given = {"fit_intercept": fit_intercept}
    for ours, theirs in [
        (exact.MultiTaskLasso(alpha=0.2, **given), sk.MultiTaskLasso(alpha=0.2, **given, **TIGHT)),
        (exact.MultiTaskElasticNet(alpha=0.2, **given), sk.MultiTaskElasticNet(alpha=0.2, **given, **TIGHT)),
    ]:
        ours.fit(problems.X, Y)
        theirs.fit(problems.X, Y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=AGREE)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=0, atol=AGREE)
        np.testing.assert_allclose(ours.predict(problems.X), theirs.predict(problems.X), rtol=0, atol=1e-4)
        zero = ours.coef_ == 0
        assert zero.any() and (zero.all(axis=0) == zero.any(axis=0)).all() and ours.certificate_.status == "converged"
    with pytest.raises(ValueError, match="mono-task"):
        exact.MultiTaskLasso().fit(problems.X, problems.real)


def grouped(X, y, alpha, groups, weights, share, steps=60_000):
    """The sparse group lasso by proximal gradients, without intercept."""
    x, step = np.zeros(X.shape[1]), len(y) / np.linalg.norm(X, 2) ** 2
    for _ in range(steps):
        z = x - step * X.T @ (X @ x - y) / len(y)
        z = np.sign(z) * np.maximum(np.abs(z) - step * alpha * share, 0)
        for group, weight in weights.items():
            own = groups == group
            size = np.linalg.norm(z[own])
            z[own] *= max(1 - step * alpha * (1 - share) * weight / size, 0) if size else 0
        if np.abs(z - x).max() < 1e-13:
            break
        x = z
    return x


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_groups(problems, share):
    groups = np.array(["abc"[j % 3] + str(j // 6) for j in range(problems.X.shape[1])])
    names, sizes = np.unique(groups, return_counts=True)
    roots = dict(zip(names.tolist(), np.sqrt(sizes)))
    for weights, meant in [
        (None, roots),
        ("one", dict.fromkeys(roots, 1.0)),
        ({names[0]: 3.0}, {**dict.fromkeys(roots, 1.0), names[0]: 3.0}),
    ]:
        given = {"groups": groups, "group_weights": weights, "group_l1": share, "fit_intercept": False}
        model = exact.SparseRegressor(alpha=0.05, **given).fit(problems.X, problems.real)
        truth = grouped(problems.X, problems.real, 0.05, groups, meant, share)
        np.testing.assert_allclose(model.coef_, truth, rtol=0, atol=1e-6)
        assert model.certificate_.status == "converged" and (model.coef_ == 0).any() and (model.coef_ != 0).any()


def test_the_weights_of_a_feature_are_a_group_for_all_classes(problems):
    classes = np.digitize(problems.real, np.quantile(problems.real, [0.3, 0.7]))
    apart = obprox.SparseClassifier(alpha=0.05).fit(problems.X, classes)
    together = obprox.SparseClassifier(alpha=0.05, groups="each", group_weights="one").fit(problems.X, classes)
    zero = together.coef_ == 0
    assert zero.any() and (zero.all(axis=0) == zero.any(axis=0)).all() and together.certificate_.status == "converged"
    assert not ((apart.coef_ == 0).all(axis=0) == (apart.coef_ == 0).any(axis=0)).all()
    for solver in ["prox-sg", "obproxsg", "rda", "prox-svrg"]:
        found = obprox.SparseClassifier(alpha=0.05, groups="each", group_weights="one", solver=solver, max_iter=20, tol=2.0)
        found.fit(problems.X, classes)
        assert found.certificate_.F >= together.certificate_.F - 1e-9


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"positive": True, "groups": "each"}, "groups: cannot be had together with positive"),
        ({"bounds": 3}, "bounds: give two"),
        ({"bounds": (1.0, 2.0)}, "do not have 0 between them"),
        ({"groups": "all"}, "neither 'each' nor"),
        ({"groups": [1, 2]}, "expected"),
        ({"group_l1": 0.5}, "there are no groups"),
        ({"groups": "each", "group_weights": {99999: 1.0}}, "there is no group 99999"),
        ({"groups": "each", "group_weights": {0: -1.0}}, "not negative"),
        ({"groups": "each", "group_l1": 2.0}, "between 0 and 1"),
        ({"groups": "each", "penalty_weights": 1.0}, "weights of their own"),
    ],
)
def test_what_does_not_fit_is_refused(problems, keywords, says):
    with pytest.raises(ValueError, match=says):
        obprox.SparseRegressor(**keywords).fit(problems.X, problems.real)
