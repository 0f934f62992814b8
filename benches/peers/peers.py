"""The peers: one function each, from (X, y, lambda, tolerance) to (weights, intercept).

All minimise (1/N) sum log(1 + exp(-y_i (x_i.w + b))) + lambda |w|_1, b without penalty where the peer can do that.
A peer is prepared once (`prepare`, not timed: the form in which it wants its data) and fitted many times.
"""

import contextlib
import os
import warnings

import numpy as np
import scipy.sparse as sp

warnings.filterwarnings("ignore")


def as_given(X, y):
    return X, y


def column_major(X, y):
    return (X.tocsc() if sp.issparse(X) else np.asfortranarray(X)), y


@contextlib.contextmanager
def quietly():
    """Silence for libraries that print from C."""
    null, out, err = os.open(os.devnull, os.O_WRONLY), os.dup(1), os.dup(2)
    os.dup2(null, 1), os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(out, 1), os.dup2(err, 2)
        for descriptor in (null, out, err):
            os.close(descriptor)


class Liblinear:
    """LIBLINEAR -s 6 with the intercept left unpenalised (-R)."""

    tolerances = [1e-2, 1e-3, 1e-4, 1e-6]

    def prepare(self, X, y):
        from liblinear.liblinearutil import problem

        # -R wants the bias as a column that the problem knows of.
        self.problem, self.n = problem(y, sp.csr_matrix(X), bias=1), X.shape[1]
        self.rows = X.shape[0]

    def fit(self, lam, tol):
        from liblinear.liblinearutil import parameter, train

        model = train(self.problem, parameter(f"-s 6 -c {1 / (lam * self.rows)!r} -B 1 -R -e {tol!r} -q"))
        w = np.array(model.w[: self.n + 1])
        # LIBLINEAR counts the class of its first row as positive.
        w = w if model.label[0] == 1 else -w
        return w[:-1], w[-1]

    def path(self, lambdas, tol):
        """It has no warm start from Python: one fit after the other."""
        return [self.fit(lam, tol) for lam in lambdas]


class Saga:
    """scikit-learn, saga."""

    tolerances = [1e-2, 1e-3, 1e-4]

    def prepare(self, X, y):
        self.X, self.y = as_given(X, y)

    def fit(self, lam, tol):
        from sklearn.linear_model import LogisticRegression

        C = 1 / (lam * self.X.shape[0])
        model = LogisticRegression(l1_ratio=1, solver="saga", C=C, tol=tol, max_iter=100_000, random_state=0)
        model.fit(self.X, self.y)
        return model.coef_[0], model.intercept_[0]

    def path(self, lambdas, tol):
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            l1_ratio=1, solver="saga", tol=tol, max_iter=100_000, random_state=0, warm_start=True
        )
        fits = []
        for lam in lambdas:
            model.set_params(C=1 / (lam * self.X.shape[0])).fit(self.X, self.y)
            fits.append((model.coef_[0].copy(), model.intercept_[0]))
        return fits


class Skglm:
    tolerances = [1e-3, 1e-4, 1e-5, 1e-6, 1e-8]

    def prepare(self, X, y):
        self.X, self.y = column_major(X, y)

    def fit(self, lam, tol):
        from skglm import SparseLogisticRegression

        model = SparseLogisticRegression(alpha=lam, tol=tol, max_iter=200, max_epochs=10_000)
        model.fit(self.X, self.y)
        return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])

    def path(self, lambdas, tol):
        from skglm import SparseLogisticRegression

        model = SparseLogisticRegression(tol=tol, max_iter=200, max_epochs=10_000, warm_start=True)
        fits = []
        for lam in lambdas:
            model.alpha = lam
            model.fit(self.X, self.y)
            fits.append((np.ravel(model.coef_).copy(), float(np.ravel(model.intercept_)[0])))
        return fits


class Celer:
    """Celer has no intercept: its problem is the one without, and so is its optimum."""

    intercept = False
    tolerances = [1e-2, 1e-3, 1e-4, 1e-6]

    def prepare(self, X, y):
        self.X, self.y = column_major(X, y)

    def fit(self, lam, tol):
        from celer import LogisticRegression

        C = 1 / (lam * self.X.shape[0])
        model = LogisticRegression(C=C, tol=tol, max_iter=100)
        model.fit(self.X, self.y)
        return model.coef_[0], 0.0


class Glum:
    """glum forms the whole Hessian: only where the columns are few."""

    most_columns = 2_000
    tolerances = [1e-4, 1e-6, 1e-8]

    def prepare(self, X, y):
        self.X, self.y = column_major(X, (y + 1) / 2)

    def fit(self, lam, tol):
        from glum import GeneralizedLinearRegressor

        model = GeneralizedLinearRegressor(
            family="binomial", alpha=lam, l1_ratio=1, gradient_tol=tol, max_iter=1000
        )
        model.fit(self.X, self.y)
        return model.coef_, model.intercept_


class Cyanure:
    tolerances = [1e-3, 1e-5, 1e-7]

    def prepare(self, X, y):
        self.X, self.y = X, y.astype(np.int64)

    def fit(self, lam, tol):
        from cyanure.estimators import Classifier

        with quietly():
            model = Classifier(
                loss="logistic", penalty="l1", lambda_1=lam, tol=tol, max_iter=5000, verbose=False, n_threads=2
            )
            model.fit(self.X, self.y)
        return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])


class Snapml:
    """snapML penalises its intercept: its answers are to a problem that is near, not the same."""

    tolerances = [1e-3, 1e-5, 1e-7]

    def prepare(self, X, y):
        self.X, self.y = X, y

    def fit(self, lam, tol):
        from snapml import LogisticRegression

        model = LogisticRegression(
            penalty="l1", dual=False, regularizer=lam * self.X.shape[0], tol=tol, max_iter=10_000,
            fit_intercept=True, n_jobs=2,
        )
        model.fit(self.X, self.y)
        return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])


class Adelie:
    """adelie goes down a path to lambda, as it is made for; sparse columns as they are."""

    most_columns = 60_000
    tolerances = [1e-7, 1e-9, 1e-12]

    def prepare(self, X, y):
        import adelie

        X, y = column_major(X.astype(np.float64), y)
        self.X = adelie.matrix.sparse(X, method="naive", n_threads=2) if sp.issparse(X) else X
        self.y = (y + 1) / 2

    def path(self, lambdas, tol):
        import adelie

        state = adelie.grpnet(
            self.X, adelie.glm.binomial(self.y), lmda_path=np.asarray(lambdas), early_exit=False, progress_bar=False,
            tol=tol, irls_tol=tol, n_threads=2,
        )
        return [(np.ravel(beta.toarray()), float(b)) for beta, b in zip(state.betas, state.intercepts)]

    def fit(self, lam, tol):
        return self.path([lam], tol)[-1]


class Glmnet:
    """glmnet, the Fortran of it; like adelie it is made for paths."""

    tolerances = [1e-4, 1e-7, 1e-10]

    def prepare(self, X, y):
        self.X, self.y = column_major(X, y)

    def path(self, lambdas, tol):
        from glmnet import LogitNet

        model = LogitNet(lambda_path=np.asarray(lambdas), standardize=False, n_splits=0, tol=tol, max_iter=10_000_000)
        model.fit(self.X, self.y)
        # It ends early where it thinks that enough is explained; what is missing counts as the last it gave.
        coefs, intercepts = model.coef_path_[0], np.ravel(model.intercept_path_)
        last = len(intercepts) - 1
        return [(coefs[:, min(at, last)], float(intercepts[min(at, last)])) for at in range(len(lambdas))]

    def fit(self, lam, tol):
        return self.path([lam], tol)[-1]


class Skein:
    most_columns = 60_000
    tolerances = [1e-4, 1e-6, 1e-8]

    def prepare(self, X, y):
        self.X, self.y = column_major(X, (y + 1) / 2)

    def fit(self, lam, tol):
        from skein_glm import LogisticLassoRegressor

        model = LogisticLassoRegressor(lam, tol=tol, outer_tol=tol, max_iter=10_000, max_outer=200)
        model.fit(self.X, self.y)
        return np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])

    def path(self, lambdas, tol):
        from skein_glm import LogisticLassoPathRegressor

        model = LogisticLassoPathRegressor(
            lambdas=np.asarray(lambdas), tol=tol, outer_tol=tol, max_iter=10_000, max_outer=200
        )
        model.fit(self.X, self.y)
        coefs = np.asarray(model.coefs_ if hasattr(model, "coefs_") else model.coef_)
        coefs = coefs if coefs.shape[0] == len(lambdas) else coefs.T
        intercepts = np.ravel(model.intercepts_ if hasattr(model, "intercepts_") else model.intercept_)
        return list(zip(coefs, intercepts))


PEERS = {
    "LIBLINEAR": Liblinear,
    "scikit-learn saga": Saga,
    "skglm": Skglm,
    "Celer (no intercept)": Celer,
    "glum": Glum,
    "Cyanure": Cyanure,
    "snapML": Snapml,
    "adelie": Adelie,
    "glmnet": Glmnet,
    "skein-glm": Skein,
}
