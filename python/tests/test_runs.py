"""How a run is watched, stopped and interrupted."""

import io
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from types import SimpleNamespace

import numpy as np
import obprox
import pytest
from obprox import _core
from obprox.solvers import RDA, OBProxSG, OBProxSGPlus, ProxSG, ProxSVRG
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import check_is_fitted

SOLVERS = ["auto", "obproxsg-plus", "obproxsg", "prox-sg", "rda", "prox-svrg"]


@pytest.fixture(scope="module")
def large():
    """A problem on which a step takes its time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 60))
    return X, (X[:, :5].sum(axis=1) + rng.logistic(size=2000) > 0).astype(int)


#: A run that would not end by itself while anyone waits: that it ends at all is what is tested.
ENDLESS = {"solver": "prox-sg", "max_iter": 100_000_000, "tol": 0.0}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_solver_by_name(problems, solver):
    model = obprox.LogisticRegression(C=0.1, solver=solver).fit(problems.X, problems.binary)
    best = obprox.LogisticRegression(C=0.1).fit(problems.X, problems.binary).certificate_.F
    assert best - 1e-12 <= model.certificate_.F < 2 * best
    assert set(model.trace_["phase"]) <= {"prox", "orthant", "newton"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_parameters_of_the_methods_reach_them(problems):
    X, y = problems.X, problems.binary

    def trace(**given):
        return obprox.LogisticRegression(C=0.1, **given).fit(X, y).trace_

    steps = trace(solver=ProxSG(step=0.5, decay=0.9, batch=20), max_iter=4)
    np.testing.assert_allclose(steps["step_size"], 0.5 * 0.9 ** np.arange(4))
    assert steps["iterations"].tolist() == [8, 16, 24, 32]
    phases = trace(solver=OBProxSG(n_p=1, n_o=2), max_iter=6)["phase"]
    assert list(phases) == ["prox", "orthant", "orthant"] * 2
    phases = trace(solver=OBProxSG(n_p=2, n_o=None), max_iter=5)["phase"]
    assert list(phases) == ["prox"] * 2 + ["orthant"] * 3
    phases = trace(solver="obproxsg-plus", max_iter=17)["phase"]
    assert list(phases) == ["prox"] * 15 + ["orthant"] * 2
    plain, other = (trace(solver=RDA(gamma=gamma), max_iter=2)["F"].iloc[-1] for gamma in (0.1, 5.0))
    assert plain != other
    whole = trace(solver=ProxSG(batch="all", step="auto", schedule="constant"), max_iter=3)
    assert whole["iterations"].tolist() == [1, 2, 3] and whole["step_size"].nunique() == 1
    mean, last = (trace(solver=ProxSVRG(average=average), max_iter=2)["F"].iloc[-1] for average in (True, False))
    assert mean != last


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_method_is_a_parameter_like_any_other(problems):
    """Its name is its defaults; it is cloned, shown, searched over and set by nested names."""
    X, y = problems.X, problems.binary
    for made in (OBProxSG(), OBProxSGPlus(), ProxSG(), ProxSVRG(), RDA()):
        named = obprox.LogisticRegression(solver=made._name, max_iter=3).fit(X, y)
        np.testing.assert_array_equal(named.coef_, obprox.LogisticRegression(solver=made, max_iter=3).fit(X, y).coef_)
        # The paper's settings are written down here and in the core.
        core = _core.fit(named._penalised(*named._problems(X, y, None)), _core.Settings(made._name, max_iter=3))
        np.testing.assert_array_equal(named.coef_, core.coef)
    model = obprox.LogisticRegression(solver=OBProxSG(n_p=2, n_o=None))
    copy = clone(model).set_params(solver__n_p=3)
    assert copy.solver.n_p == 3 and copy.solver.n_o is None and model.solver.n_p == 2
    assert repr(model) == "LogisticRegression(solver=OBProxSG(n_o=None, n_p=2))"
    found = GridSearchCV(model, {"solver__step": [1e-6, 1.0]}, scoring="neg_log_loss", cv=2).fit(X, y)
    assert found.best_params_ == {"solver__step": 1.0}
    assert pickle.loads(pickle.dumps(model)).solver.n_p == 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_seed_alone_decides(problems):
    def coef(n_jobs=None, **given):
        model = obprox.LogisticRegression(solver=ProxSG(**given), max_iter=2, n_jobs=n_jobs)
        return model.fit(problems.X, problems.binary).coef_

    np.testing.assert_array_equal(coef(random_state=1, n_jobs=1), coef(random_state=1, n_jobs=2))
    np.testing.assert_array_equal(coef(), coef(random_state=0))
    np.testing.assert_array_equal(*(coef(random_state=np.random.RandomState(5)) for _ in range(2)))
    assert np.any(coef(random_state=1) != coef(random_state=2))


def test_a_warm_start_is_a_start(problems):
    model = obprox.LogisticRegression(C=0.1, warm_start=True).fit(problems.X, problems.binary)
    cold = model.n_iter_[0], model.trace_["F"].iloc[0]
    model.fit(problems.X, problems.binary)
    assert model.n_iter_[0] == 1 and model.trace_["F"].iloc[0] <= cold[1]
    model.set_params(C=0.2).fit(problems.X, problems.classes)
    assert model.coef_.shape[0] == 3, "another shape is a fresh start"
    lasso = obprox.Lasso(0.1, warm_start=True).fit(problems.X, problems.real)
    assert lasso.set_params(alpha=0.05).fit(problems.X, problems.real).certificate_.status == "converged"


def test_a_run_that_falls_short_warns_with_the_gap(problems):
    model = obprox.LogisticRegression(solver="prox-sg", max_iter=1)
    with pytest.warns(obprox.ConvergenceWarning, match="relative duality gap of 0.*increase max_iter") as caught:
        model.fit(problems.X, problems.binary)
    assert caught[0].filename == __file__, "the warning points at the caller"
    assert f"{model.certificate_.relative_gap:.3g}" in str(caught[0].message)
    assert model.certificate_.status == "max_epochs"
    with pytest.warns(obprox.ConvergenceWarning, match="diverged.*smaller step"):
        obprox.SparseRegressor(solver=ProxSG(step=1e6)).fit(problems.X, problems.real)


def test_callbacks_see_each_epoch_and_may_stop(problems):
    seen = []

    def watch(figures):
        assert threading.current_thread() is threading.main_thread()
        seen.append(figures)
        return figures["epoch"] == 3

    model = obprox.LogisticRegression(callback=watch, **ENDLESS).fit(problems.X, problems.binary)
    assert [figures["epoch"] for figures in seen] == [1, 2, 3] == model.trace_["epoch"].tolist()
    assert model.certificate_.status == "stopped" and model.n_iter_[0] == 3
    assert {"F", "gap", "kkt", "nnz", "density", "phase", "seconds"} <= set(seen[0])
    stopped = obprox.path(problems.X, problems.real, alphas=50, callback=lambda figures: figures["nnz"] > 3)
    assert 1 < len(stopped) < 50


def test_what_a_callback_raises_comes_out(problems):
    def fail(figures):
        raise LookupError("from the callback")

    model = obprox.LogisticRegression(callback=fail, **ENDLESS)
    with pytest.raises(LookupError, match="from the callback"):
        model.fit(problems.X, problems.binary)
    with pytest.raises(NotFittedError):
        model.predict(problems.X)


def interrupted(model, X, y):
    """Presses Ctrl-C a little later: from another Python thread, which runs only because the solver lets it."""
    # A process that a script started in the background ignores the signal, and Python leaves it at that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


@pytest.mark.parametrize("callback", [None, lambda figures: None], ids=["", "callback"])
def test_ctrl_c_is_heard_and_leaves_nothing(large, callback):
    model = obprox.LogisticRegression(callback=callback, **ENDLESS)
    interrupted(model, *large)
    # One that was fitted before is not any more: its weights are not those of what was asked for.
    model.set_params(solver="auto", tol=1e-6, max_iter=None).fit(*large)
    check_is_fitted(model)
    interrupted(model.set_params(**ENDLESS), *large)


def test_ctrl_c_ends_a_cross_validation(large):
    interrupted(obprox.SparseClassifierCV(alphas=1000, cv=5, **ENDLESS), *large)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_can_fit_too(problems):
    expected = obprox.Lasso(0.1).fit(problems.X, problems.real).coef_
    with multiprocessing.get_context("fork").Pool(2) as pool:
        jobs = [pool.apply_async(forked, (problems.X, problems.real)) for _ in range(2)]
        for job in jobs:
            np.testing.assert_array_equal(job.get(timeout=60), expected)


def forked(X, y):
    return obprox.Lasso(0.1).fit(X, y).coef_


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_forked_within_a_fit_can_fit_too(problems):
    """Its parent's threads wait for work, or are at it; the child has none of them."""
    expected = obprox.Lasso(0.1).fit(problems.X, problems.real).coef_
    context, children = multiprocessing.get_context("fork"), []

    def fork(_):
        queue = context.SimpleQueue()
        child = context.Process(target=lambda: queue.put(forked(problems.X, problems.real)))
        child.start()
        children.append((child, queue))

    obprox.Lasso(0.1, callback=fork, max_iter=1).fit(problems.X, problems.real)
    fork(None)
    for child, queue in children:
        child.join(60)
        assert child.exitcode == 0
        np.testing.assert_array_equal(queue.get(), expected)
    assert len(children) == 2


def test_fits_with_other_threads_in_turn_and_within_each_other(problems):
    fit = lambda n_jobs, **more: obprox.Lasso(0.1, n_jobs=n_jobs, **more).fit(problems.X, problems.real).coef_
    expected, found = fit(1), []
    within = lambda _: found.extend([fit(1), fit(2)])
    found += [fit(2), fit(2), fit(1), fit(None), fit(2, callback=within, max_iter=1), fit(2), fit(1)]
    assert len(found) >= 9 and all(np.array_equal(coef, expected) for coef in found)


def test_fits_in_several_threads_at_once(problems):
    expected = obprox.LogisticRegression().fit(problems.X, problems.binary).coef_
    found = []
    fit = lambda: found.append(obprox.LogisticRegression(n_jobs=1).fit(problems.X, problems.binary).coef_)
    threads = [threading.Thread(target=fit) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == 6 and all(np.array_equal(coef, expected) for coef in found)


def test_verbose_shows_a_bar(problems, capsys, monkeypatch):
    obprox.LogisticRegression(verbose=1).fit(problems.X, problems.binary)
    lines = capsys.readouterr()
    assert lines.out == "" and "auto" in lines.err and "gap" in lines.err and "█" in lines.err
    monkeypatch.setattr(sys, "stderr", Terminal())
    obprox.LassoCV(alphas=5, verbose=1).fit(problems.X, problems.real)
    assert "\r" in sys.stderr.getvalue() and "25/25 fits\n" in sys.stderr.getvalue()
    obprox.Lasso(verbose=0).fit(problems.X, problems.real)


def test_verbose_in_a_notebook_updates_one_cell(problems, monkeypatch, capsys):
    shown = []
    handle = SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))
    shell = SimpleNamespace(kernel=object())
    display = SimpleNamespace(display=lambda data, raw, display_id: handle)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    model = obprox.LogisticRegression(verbose=1).fit(problems.X, problems.binary)
    assert len(shown) == model.n_iter_[0] and "█" in shown[-1]
    assert capsys.readouterr().err == ""
    del shell.kernel
    obprox.LogisticRegression(verbose=1).fit(problems.X, problems.binary)
    assert len(shown) == model.n_iter_[0] and "█" in capsys.readouterr().err, "IPython in a terminal is a terminal"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_no_more_threads_than_cores_work():
    from obprox._parameters import threads

    assert threads(2000) == os.cpu_count() and threads(1) == 1 and threads(-1) == os.cpu_count()
