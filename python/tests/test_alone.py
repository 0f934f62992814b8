"""numpy is all that is needed: everything else is missed by no one."""

import subprocess
import sys
import textwrap


def run(code):
    """Runs code where scikit-learn, scipy, pandas, matplotlib and torch cannot be imported."""
    blocker = """
        import sys
        class Blocker:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] in ("sklearn", "scipy", "pandas", "matplotlib", "torch", "joblib"):
                    raise ImportError(f"{name} is blocked")
        sys.meta_path.insert(0, Blocker())
        import numpy as np
        import obprox
        rng = np.random.default_rng(0)
        X = rng.normal(size=(120, 10))
        real = X[:, 0] - 2 * X[:, 1] + 0.1 * rng.normal(size=120)
    """
    code = textwrap.dedent(blocker) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_estimators_work_on_numpy_alone():
    run(
        """
        model = obprox.Lasso(0.1).fit(X, real)
        assert np.flatnonzero(model.coef_).tolist() == [0, 1]
        assert model.score(X, real) > 0.9
        assert isinstance(model.trace_, dict) and len(model.trace_["F"]) == model.n_iter_
        assert repr(model) == "Lasso(alpha=0.1)" and "certificate" in model._repr_html_()
        assert obprox.Lasso().set_params(alpha=2.0).get_params()["alpha"] == 2.0

        names = np.where(real > 0, "up", "down")
        model = obprox.LogisticRegression(class_weight="balanced").fit(X, names)
        assert model.score(X, names) > 0.95 and model.predict_proba(X).shape == (120, 2)
        assert set(obprox.SparseClassifier("squared-hinge").fit(X, np.digitize(real, [-1, 1])).predict(X)) == {0, 1, 2}
        assert obprox.LassoCV(alphas=10, cv=4).fit(X, real).mse_path_.shape == (10, 4)
        assert obprox.LogisticRegressionCV(Cs=3, scoring="neg_log_loss").fit(X, names).C_.shape == (1,)
        assert obprox.path(X, real, alphas=5).coefs.shape == (10, 5)
        """
    )


def test_what_is_missing_is_said():
    run(
        """
        def refused(call, *words):
            try:
                call()
            except Exception as error:
                assert all(word in str(error) for word in words), error
                return error
            raise AssertionError("it was not refused")

        refused(lambda: obprox.load_svmlight_file("x.svm"), "pip install scipy")
        refused(lambda: obprox.plot_path(obprox.path(X, real, alphas=3)), "pip install matplotlib")
        refused(lambda: obprox.Lasso().fit(X[0], real), "Expected 2D array")
        refused(lambda: obprox.Lasso().fit(X, real[:5]), "inconsistent numbers of samples")
        refused(lambda: obprox.Lasso().fit(np.full((120, 2), np.nan), real), "NaN")
        refused(lambda: obprox.Lasso().predict(X), "not fitted")
        refused(lambda: obprox.Lasso().fit(X, real).predict(X[:, :3]), "expecting 10 features")
        refused(lambda: obprox.LogisticRegression().fit(X, real), "Unknown label type")
        refused(lambda: obprox.Lasso().set_params(beta=1), "beta")
        """
    )


def test_the_import_is_quick_and_light():
    run(
        """
        import time, importlib
        heavy = [name for name in sys.modules if name.startswith("obprox.")]
        assert heavy == ["obprox._core"], heavy
        """
    )
