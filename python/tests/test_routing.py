"""scikit-learn's metadata routing: weights and offsets reach the estimators through what is around them."""

import numpy as np
import obprox
import sklearn
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def test_weights_and_offsets_reach_the_fit(problems):
    X, y, weights = problems.X, problems.counts, problems.weights
    offset = np.linspace(-0.5, 0.5, len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        inner = obprox.SparseRegressor("poisson").set_fit_request(sample_weight=True, offset=True)
        piped = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), inner)
        piped.fit(X, y, sample_weight=weights, offset=offset)
    scaled = StandardScaler().fit_transform(X)
    alone = obprox.SparseRegressor("poisson").fit(scaled, y, sample_weight=weights, offset=offset)
    np.testing.assert_array_equal(piped[-1].coef_, alone.coef_)
    assert np.any(alone.coef_ != obprox.SparseRegressor("poisson").fit(scaled, y).coef_)


def test_weights_reach_the_fits_of_a_search(problems):
    X, y, weights = problems.X, problems.real, problems.weights
    with sklearn.config_context(enable_metadata_routing=True):
        lasso = obprox.Lasso().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        found = GridSearchCV(lasso, {"alpha": [0.01, 0.1, 1.0]}, cv=3).fit(X, y, sample_weight=weights)
        plain = GridSearchCV(lasso, {"alpha": [0.01, 0.1, 1.0]}, cv=3).fit(X, y)
    expected = obprox.Lasso(found.best_params_["alpha"]).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(found.best_estimator_.coef_, expected.coef_)
    assert np.any(found.cv_results_["mean_test_score"] != plain.cv_results_["mean_test_score"])


def test_an_estimator_shows_itself_in_a_notebook(problems):
    model = obprox.Lasso(0.1).fit(problems.X, problems.real)
    page = model._repr_html_()
    assert "Lasso" in page and "certificate" in page.lower() and "<script src" not in page
