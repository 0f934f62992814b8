"""``python -m obprox.cluster``: a fit to files that the workers of a Dask cluster open."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from . import _core
from .exceptions import ClusterError, ObproxError, ParameterError

LOSSES = ["logistic", "squared", "squared-hinge", "huber", "poisson", "softmax"]


def parser():
    """The flags; those that ``obprox fit`` has too mean the same."""
    top = argparse.ArgumentParser(prog="python -m obprox.cluster", description="Fits whose rows are on several machines.")
    fit = top.add_subparsers(dest="command", required=True).add_parser(
        "fit",
        help="fit a model to files, each of them a shard",
        epilog="While the data fits one machine, `obprox fit` is faster there, and `obprox fit --memory` where it fits a disk.",
    )
    flag = fit.add_argument
    flag("files", nargs="+", metavar="FILE", help="files or patterns; every worker must be able to open them")
    flag("--scheduler", metavar="ADDRESS", help="the scheduler of the Dask cluster, as tcp://host:8786")
    flag("--workers", type=int, metavar="N", help="instead: start N worker processes on this machine")
    flag("--loss", choices=LOSSES, default="logistic", help="what is minimised")
    flag("--delta", type=float, default=1.345, help="where the Huber loss turns linear")
    flag("--label", help="the column of the targets, of CSV files")
    flag("--features", type=int, default=0, metavar="N", help="at least that many columns")
    flag("--lambda", dest="lambda_", default="1/N", metavar="λ", help="1/N, 0.1max or a number")
    flag("--l2", type=float, default=0.0, metavar="λ₂", help="the weight of ½‖x‖²")
    flag("--positive", action="store_true", help="no weight is negative")
    flag("--balanced", action="store_true", help="every class counts the same")
    flag("--no-intercept", action="store_true", help="no intercept")
    flag("--epochs", type=int, metavar="N", help="at most that many rounds")
    flag("--tol", type=float, default=1e-6, help="the relative duality gap to stop at")
    flag("--worker-memory", type=int, default=1024, metavar="MB", help="what a worker keeps of its shards; no other bits")
    flag("--timeout", type=float, default=60.0, metavar="S", help="seconds without any worker after which to give up")
    flag("--out", metavar="FILE", help="the model")
    flag("--log", metavar="FILE", help="a JSON object a line: start, epochs, end")
    flag("--checkpoint", metavar="DIR", help="keep the state after every round")
    flag("--resume", action="store_true", help="go on from the checkpoint, to the same bits")
    flag("--quiet", action="store_true", help="print nothing")
    return top


class _Log:
    """A log that is written line by line."""

    def __init__(self, path):
        self._file = open(path, "w", encoding="utf-8") if path else None

    def write(self, event, **figures):
        if self._file is not None:
            plain = {name: (value.item() if hasattr(value, "item") else value) for name, value in figures.items()}
            self._file.write(json.dumps({"event": event, **plain}) + "\n")
            self._file.flush()


def _estimator(given, log, say):
    """A model of the flags, whose penalty is that of the command."""
    from . import dask

    classes = given.loss in ("logistic", "squared-hinge", "softmax")
    base = dask.SparseClassifier if classes else dask.SparseRegressor

    class Model(base):
        def _penalised(self, problem):
            problem = problem.with_lambda(given.lambda_, given.l2)
            share = problem.lambda_ / problem.lambda_max if problem.lambda_max else float("nan")
            say(f"λ = {problem.lambda_:.6g} = {share:.6g} λ_max")
            shape = {"rows": self._shape[0], "features": self._shape[1], "shards": self._shards}
            log.write("start", loss=given.loss, lambda_=problem.lambda_, lambda_max=problem.lambda_max, l2=given.l2,
                      tol=given.tol, version=_core.__version__, **shape)
            return problem

        def _state_remote(self, cluster, classes):
            self._shape, self._shards = cluster.shape, cluster.n_shards
            say(f"{cluster.shape[0]} rows × {cluster.shape[1]} features in {cluster.n_shards} shards, {given.loss} loss")
            return super()._state_remote(cluster, classes)

    def heard(figures):
        log.write("epoch", **figures)
        gap = figures.get("relative_gap")
        say(f"round {figures['epoch']}: F {figures['F']:.10g}, gap {'–' if gap is None else format(gap, '.2e')}, "
            f"{figures['nnz']} nonzero, {figures['seconds']:.2f} s")

    chosen = {
        "loss": "logistic" if given.loss == "softmax" else given.loss,
        "fit_intercept": not given.no_intercept,
        "positive": given.positive,
        "tol": given.tol,
        "max_iter": given.epochs,
        "checkpoint": given.checkpoint,
        "resume": given.resume,
        "callback": heard,
        **({"class_weight": "balanced" if given.balanced else None} if classes else {"delta": given.delta}),
    }
    if given.balanced and not classes:
        raise ParameterError(f"balanced: the {given.loss} loss has no classes")
    model = Model(**chosen)
    model.timeout, model.worker_memory = given.timeout, given.worker_memory << 20
    return model


def _fit(given):
    from distributed import Client

    say = (lambda text: None) if given.quiet else (lambda text: print(text, flush=True))
    if (given.scheduler is None) == (given.workers is None):
        raise ParameterError("scheduler: give the address of a cluster, or --workers to start some here")
    for path in (given.out, given.log):
        if path and not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            raise ParameterError(f"out: the directory of {path} is not there")
    from .cluster import files

    files(given.files)
    begun, log = time.monotonic(), _Log(given.log)
    if given.scheduler is not None:
        try:
            client = Client(given.scheduler, timeout=given.timeout)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(f"no scheduler answers at {given.scheduler}: {error}") from None
    else:
        client = Client(n_workers=given.workers, threads_per_worker=1, dashboard_address=None)
    with client:
        model = _estimator(given, log, say)
        model.client = client
        model.fit_files(given.files, n_features=given.features, label=given.label)
    figures = dict(model.certificate_)
    log.write("end", passes=model.passes_, elapsed=time.monotonic() - begun, **figures)
    say(f"{figures['status']}: F {figures['F']!r}, {figures['nnz']} nonzero, {model.passes_} passes, "
        f"{time.monotonic() - begun:.1f} s")
    if given.out:
        model.save(given.out)
    return 0


def main(arguments=None):
    """Runs the command: 0 done, 2 what was given is wrong, 1 anything else."""
    given = parser().parse_args(arguments)
    try:
        return _fit(given)
    except ClusterError as error:
        status, text = 1, error
    except (ObproxError, ValueError) as error:
        status, text = 2, error
    except ImportError as error:
        status, text = 2, f"{error}: pip install 'obprox[dask]'"
    print(f"error: {text}", file=sys.stderr)
    return status
