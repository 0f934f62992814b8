"""Work that is broken off and gone on with: the same bits as if nothing had happened."""

import contextlib
import multiprocessing
import os
import shutil
import signal
import warnings

import numpy as np
import obprox
import pytest
from obprox.exceptions import FileError, ParameterError

SOLVERS = ["auto", "obproxsg-plus", "obproxsg", "prox-sg", "rda", "prox-svrg"]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def after(epochs):
    """A callback that ends a run after so many epochs."""
    return lambda figures: figures["epoch"] == epochs


def options(solver):
    # Enough to do for more than two rounds or epochs.
    return {"C": 50.0, "tol": 1e-13} if solver == "auto" else {"C": 0.1, "max_iter": 6}


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fit_goes_on_to_the_same_bits(problems, tmp_path, solver):
    X, y = problems.X, problems.binary
    given = {"solver": solver, **options(solver)}
    whole = obprox.LogisticRegression(**given).fit(X, y)
    assert whole.n_iter_[0] > 2, "there is something to break off"
    part = obprox.LogisticRegression(checkpoint=tmp_path / "state", callback=after(2), **given).fit(X, y)
    assert part.certificate_.status == "stopped" and part.n_iter_[0] == 2
    rest = []
    again = obprox.LogisticRegression(checkpoint=tmp_path / "state", resume=True, callback=rest.append, **given)
    again.fit(X, y)
    assert [figures["epoch"] for figures in rest] == list(range(3, whole.n_iter_[0] + 1)), "only the rest was done"
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    np.testing.assert_array_equal(again.intercept_, whole.intercept_)
    np.testing.assert_array_equal(again.trace_["F"], whole.trace_["F"])
    assert again.certificate_.status == whole.certificate_.status and again.n_iter_[0] == whole.n_iter_[0]


def killed(X, y, state):
    """Is ended by the system in the middle of its run."""

    def callback(figures):
        if figures["epoch"] == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    obprox.Lasso(0.01, solver="prox-svrg", checkpoint=state, callback=callback).fit(X, y)


def test_a_fit_that_was_killed_goes_on(problems, tmp_path):
    X, y, state = problems.X, problems.real, tmp_path / "state"
    process = multiprocessing.get_context("fork").Process(target=killed, args=(X, y, state))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    heard = []
    given = {"solver": "prox-svrg", "checkpoint": state, "resume": True, "callback": heard.append}
    again = obprox.Lasso(0.01, **given).fit(X, y)
    assert heard[0]["epoch"] == 3, "two epochs had been kept"
    np.testing.assert_array_equal(again.coef_, obprox.Lasso(0.01, solver="prox-svrg").fit(X, y).coef_)
    assert os.listdir(state) == ["checkpoint.obprox"]


def test_a_finished_fit_is_not_done_again(problems, tmp_path):
    given = {"C": 0.1, "checkpoint": tmp_path, "resume": True}
    first = obprox.LogisticRegression(**given).fit(problems.X, problems.binary)
    heard = []
    again = obprox.LogisticRegression(callback=heard.append, **given).fit(problems.X, problems.binary)
    assert not heard and again.certificate_.status == "converged"
    np.testing.assert_array_equal(again.coef_, first.coef_)
    # Without resume it is.
    obprox.LogisticRegression(C=0.1, checkpoint=tmp_path, callback=heard.append).fit(problems.X, problems.binary)
    assert heard


def test_several_targets_have_a_state_each(problems, tmp_path):
    Y = np.column_stack([problems.real, problems.real**2])
    whole = obprox.Lasso(0.05).fit(problems.X, Y)
    for _ in range(2):
        again = obprox.Lasso(0.05, checkpoint=tmp_path, resume=True).fit(problems.X, Y)
        np.testing.assert_array_equal(again.coef_, whole.coef_)
    assert sorted(os.listdir(tmp_path)) == ["0", "1"]


def test_a_search_for_features_goes_on(problems, tmp_path):
    given = {"max_features": 4, "checkpoint": tmp_path, "resume": True}
    whole = obprox.SparseClassifier(**given).fit(problems.X, problems.binary)
    os.remove(tmp_path / "nnz-2.obprox-part")
    again = obprox.SparseClassifier(**given).fit(problems.X, problems.binary)
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    assert (tmp_path / "nnz-2.obprox-part").exists() and np.count_nonzero(again.coef_) <= 4


def test_a_path_goes_on(problems, tmp_path):
    whole = obprox.path(problems.X, problems.real, alphas=25, checkpoint=tmp_path / "whole")
    heard = []

    def stop(figures):
        heard.append(figures)
        return len(heard) >= 20

    part = obprox.path(problems.X, problems.real, alphas=25, checkpoint=tmp_path / "part", callback=stop)
    assert len(part) < 25
    again = obprox.path(problems.X, problems.real, alphas=25, checkpoint=tmp_path / "part", resume=True)
    np.testing.assert_array_equal(again.coefs, whole.coefs)
    np.testing.assert_array_equal(again.alphas, whole.alphas)


@pytest.mark.parametrize("scoring", ["loss", "roc_auc"])
def test_folds_go_on(problems, tmp_path, scoring):
    given = {"alphas": 12, "cv": 3, "scoring": scoring, "checkpoint": tmp_path, "resume": True}
    whole = obprox.SparseClassifierCV(**given).fit(problems.X, problems.binary)
    assert sorted(os.listdir(tmp_path)) == ["all-rows", "folds-0-0"]
    os.remove(tmp_path / "folds-0-0" / "fold-1-1.obprox-part")
    again = obprox.SparseClassifierCV(**given).fit(problems.X, problems.binary)
    np.testing.assert_array_equal(again.loss_path_, whole.loss_path_)
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    assert again.alpha_ == whole.alpha_


def test_what_cannot_be_gone_on_with_is_refused(problems, tmp_path):
    obprox.LogisticRegression(checkpoint=tmp_path).fit(problems.X, problems.binary)
    with pytest.raises(FileError, match="checkpoint is of another problem"):
        obprox.LogisticRegression(checkpoint=tmp_path, resume=True).fit(problems.X, 1 - problems.binary)
    with pytest.raises(FileError, match="run with other settings"):
        obprox.LogisticRegression(solver="rda", checkpoint=tmp_path, resume=True).fit(problems.X, problems.binary)
    with pytest.raises(ParameterError, match="resume: there is nothing to go on from"):
        obprox.LogisticRegression(resume=True).fit(problems.X, problems.binary)
    with pytest.raises(ParameterError, match="checkpoint: 7 is not the path"):
        obprox.LogisticRegression(checkpoint=7).fit(problems.X, problems.binary)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        obprox.LogisticRegression(checkpoint=tmp_path / "file").fit(problems.X, problems.binary)


def lost(state):
    """A callback under which the place of a checkpoint vanishes, as that of a disk that is taken out."""

    def callback(*_):
        if state.is_dir():
            shutil.rmtree(state)
            state.write_text("in the way")

    return callback


def test_a_checkpoint_that_cannot_be_written_costs_no_fit(problems, tmp_path):
    X, y, state = problems.X, problems.binary, tmp_path / "state"
    whole = obprox.LogisticRegression(solver="obproxsg", max_iter=6).fit(X, y)
    kept = obprox.LogisticRegression(solver="obproxsg", max_iter=6, checkpoint=state, callback=lost(state))
    with pytest.warns(RuntimeWarning, match="state.*: the fit goes on") as said:
        kept.fit(X, y)
    assert len([warning for warning in said if warning.category is RuntimeWarning]) == 1
    assert (kept.coef_ == whole.coef_).all()
    # Whoever wants it so has an error of it.
    state.unlink()
    with warnings.catch_warnings(), pytest.raises(RuntimeWarning, match="the fit goes on"):
        warnings.simplefilter("error", RuntimeWarning)
        kept.fit(X, y)


@contextlib.contextmanager
def small_files():
    """The system refuses to write long files, as where a disk is full."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_folds_that_cannot_be_written_cost_no_cross_validation(problems, tmp_path):
    state, given = tmp_path / "state", {"alphas": 12, "cv": 3}
    whole = obprox.LassoCV(**given).fit(problems.X, problems.real)
    with small_files(), pytest.warns(RuntimeWarning, match="the fit goes on"):
        kept = obprox.LassoCV(**given, checkpoint=state).fit(problems.X, problems.real)
    assert (kept.alpha_, list(kept.coef_)) == (whole.alpha_, list(whole.coef_))
    assert not list((state / "folds-0-0").glob("fold-*-0.obprox-part"))
