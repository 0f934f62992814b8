"""scikit-learn's own checks: every estimator passes all of them, with no expected failure."""

import obprox
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

ESTIMATORS = [
    obprox.LogisticRegression(),
    obprox.Lasso(),
    obprox.ElasticNet(),
    obprox.SparseClassifier(),
    obprox.SparseClassifier("squared-hinge"),
    obprox.SparseRegressor(),
    obprox.SparseRegressor("huber"),
    obprox.SparseRegressor("poisson"),
    obprox.SparseRegressor("gamma"),
    obprox.SparseRegressor("tweedie"),
    obprox.SparseRegressor("negative-binomial"),
    # Fewer penalties than by default: the same code in a tenth of the time.
    obprox.LogisticRegressionCV(),
    obprox.LassoIC(alphas=10, noise_variance=1.0),
    obprox.LassoCV(alphas=10),
    obprox.ElasticNetCV(alphas=10),
    obprox.SparseClassifierCV(alphas=10),
    obprox.SparseClassifierCV("squared-hinge", alphas=5),
    obprox.SparseRegressorCV(alphas=10),
    obprox.SparseRegressorCV("poisson", alphas=5),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)
