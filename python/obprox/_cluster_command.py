"""``python -m obprox.cluster``: a fit to files that the workers of a Dask cluster open."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

import numpy as np

from . import _core
from .exceptions import ClusterError, ObproxError, ParameterError

CLASSES = ("logistic", "squared-hinge", "softmax")
LOSSES = [*CLASSES, "squared", "huber", "poisson", "gamma", "tweedie", "negative-binomial"]


def parser():
    """The flags; those that ``obprox fit`` has too mean the same."""
    top = argparse.ArgumentParser(prog="python -m obprox.cluster", description="Fits whose rows are on several machines.")
    fit = top.add_subparsers(dest="command", required=True).add_parser(
        "fit",
        help="fit a model to files, each of them a shard",
        epilog="While the data fits one machine, `obprox fit` is faster there, and `obprox fit --memory` where it fits a disk. "
        "`obprox eval` and `obprox predict` take the model, `obprox report` the log.",
    )
    flag = fit.add_argument
    flag("files", nargs="+", metavar="FILE", help="files or patterns; every worker must be able to open them")
    flag("--scheduler", metavar="ADDRESS", help="the scheduler of the Dask cluster, as tcp://host:8786")
    flag("--workers", type=int, metavar="N", help="instead: start N worker processes on this machine")
    _problem_flags(fit.add_argument_group("the problem").add_argument)
    flag("--label", help="the column of the targets, of CSV files")
    flag("--header", action="store_true", default=None, help="CSV: the first line is a header (otherwise its content tells)")
    flag("--no-header", dest="header", action="store_false", help="CSV: the first line is a row")
    flag("--data-format", choices=["libsvm", "csv", "cache"], help="the format of the data, where its content should not tell")
    flag("--features", type=int, default=0, metavar="N", help="at least that many columns")
    flag("--names", metavar="FILE", help="the name of each feature, one a line")
    flag("--epochs", type=int, metavar="N", help="at most that many rounds")
    flag("--time", type=_seconds, metavar="TIME", help="stop after this long (90s, 5min, 2h) and keep the model reached by then")
    flag("--tol", type=float, default=1e-6, help="the relative duality gap to stop at")
    flag("--worker-memory", type=int, default=1024, metavar="MB", help="what a worker keeps of its shards; no other bits")
    flag("--timeout", type=float, default=60.0, metavar="S", help="seconds without any worker after which to give up")
    flag("--out", metavar="FILE", help="the model")
    flag("--log", metavar="FILE", help="a JSON object a line: start, epochs, end")
    flag("--checkpoint", metavar="DIR", help="keep the state after every round")
    flag("--resume", action="store_true", help="go on from the checkpoint, to the same bits")
    flag("-q", "--quiet", action="store_true", help="print nothing")
    return top


def _problem_flags(flag):
    flag("--loss", choices=LOSSES, default="logistic", help="what is minimised")
    flag("--huber-delta", type=float, default=1.345, metavar="DELTA", help="where the Huber loss turns linear")
    flag("--tweedie-power", type=float, default=1.5, metavar="P", help="the power of the Tweedie loss")
    flag("--theta", type=float, default=1.0, help="θ of the negative binomial loss")
    flag("--lambda", dest="lambda_", default="1/N", metavar="λ", help="1/N, 0.1max or a number")
    flag("--nnz", type=int, metavar="K", help="at most that many features, instead of λ")
    flag("--l2", type=float, default=0.0, metavar="λ₂", help="the weight of ½‖x‖²")
    flag("--no-intercept", action="store_true", help="no intercept")
    flag("--weights", nargs="+", metavar="FILE", help="files or patterns, one for each shard: the weight of each row, one a line")
    flag("--offset", nargs="+", metavar="FILE", help="likewise: what is added to the margin of each row")
    flag("--feature-weights", metavar="FILE", help="the penalty's weight for each feature, one a line")
    flag("--positive", action="store_true", help="no weight is negative")
    flag("--bounds", metavar="FILE", help="the lower and the upper bound of each weight, two numbers a line")
    flag("--groups", metavar="FILE|each", help="the group of each feature, a name a line")
    flag("--group-weight", default="size", metavar="size|one|FILE", help="the weight of a group")
    flag("--group-l1", type=float, default=0.0, metavar="SHARE", help="the share of l1 in the penalty of groups")
    flag("--class-weight", metavar="WEIGHTS", help="balanced, or label:weight pairs such as -1:2,1:1")


def _seconds(text):
    for unit, seconds in (("min", 60.0), ("h", 3600.0), ("s", 1.0)):
        if text.endswith(unit):
            return float(text[: -len(unit)]) * seconds
    raise argparse.ArgumentTypeError("give a number with its unit, such as 90s, 5min or 2h")


class _Log:
    """A log that is written line by line, from the start of a run on."""

    def __init__(self, path):
        self._path, self._file = path, None

    def write(self, event, **figures):
        if self._path is None:
            return
        if self._file is None:
            self._file = open(self._path, "w", encoding="utf-8")
        plain = {name: (value.item() if hasattr(value, "item") else value) for name, value in figures.items()}
        self._file.write(json.dumps({"event": event, **plain}) + "\n")
        self._file.flush()


def _lines(path):
    with open(path, encoding="utf-8") as lines:
        return [line.strip() for line in lines if line.strip()]


def _numbers(path, width=1):
    """A line of numbers for each feature."""
    found = []
    for at, line in enumerate(_lines(path), 1):
        try:
            numbers = [float(word) for word in line.replace(",", " ").split()]
        except ValueError:
            numbers = []
        if len(numbers) != width:
            raise ParameterError(f"{path}:{at}: {line!r} is not {'a number' if width == 1 else f'{width} numbers'}")
        found.append(numbers)
    return np.array(found).T.copy()


def _class_weight(text):
    if text is None or text == "balanced":
        return text
    try:
        return {float(label): float(weight) for label, weight in (pair.split(":") for pair in text.split(","))}
    except ValueError:
        raise ParameterError(f"class-weight: {text!r} is neither balanced nor pairs such as -1:2,1:1") from None


def _penalty(given):
    """The parameters of the penalty that the flags stand for."""
    found = {"positive": given.positive, "max_features": given.nnz}
    if given.feature_weights:
        found["penalty_weights"] = _numbers(given.feature_weights)[0]
    if given.bounds:
        found["bounds"] = tuple(_numbers(given.bounds, 2))
    if given.groups:
        found["groups"] = given.groups if given.groups == "each" else np.array(_lines(given.groups))
        found["group_l1"] = given.group_l1
        if given.group_weight == "one":
            found["group_weights"] = "one"
        elif given.group_weight != "size":
            pairs = [line.split() for line in _lines(given.group_weight)]
            found["group_weights"] = {name: float(weight) for name, weight in pairs}
    return found


def _estimator(given, log, say):
    """A model of the flags, whose penalty is that of the command."""
    from . import dask

    classes = given.loss in CLASSES
    base = dask.SparseClassifier if classes else dask.SparseRegressor
    begun = time.monotonic()

    class Model(base):
        def _penalised(self, problem):
            problem = problem.with_lambda(given.lambda_, given.l2)
            share = problem.lambda_ / problem.lambda_max if problem.lambda_max else float("nan")
            if given.nnz is None:
                say(f"λ = {problem.lambda_:.6g} = {share:.6g} λ_max")
            of_lambda = {"lambda": problem.lambda_, "lambda_max": problem.lambda_max, "lambda_ratio": share}
            log.write("start", version=_core.__version__, command=["python -m obprox.cluster", *sys.argv[1:]],
                      data=" ".join(map(str, given.files)), loss=given.loss, l2=given.l2, tol=given.tol, solver="auto",
                      intercept=not given.no_intercept, **of_lambda, **self._seen)
            return problem

        def _state_remote(self, cluster, classes):
            (rows, columns), shards = cluster.shape, cluster.n_shards
            self._seen = {"rows": rows, "n_features": columns, "nnz": cluster.nnz, "shards": shards, "storage": "shards"}
            say(f"{rows} rows × {columns} features in {shards} shards, {given.loss} loss")
            if given.names:
                names = _lines(given.names)
                if len(names) != columns:
                    raise ParameterError(f"names: {len(names)} for {columns} features")
                self.feature_names_in_ = np.array(names, dtype=object)
            return super()._state_remote(cluster, classes)

    def heard(figures):
        log.write("epoch", **figures)
        gap = figures.get("relative_gap")
        say(f"round {figures['epoch']}: F {figures['F']:.10g}, gap {'–' if gap is None else format(gap, '.2e')}, "
            f"{figures['nnz']} nonzero, {figures['seconds']:.2f} s")
        return given.time is not None and time.monotonic() - begun > given.time

    if given.class_weight and not classes:
        raise ParameterError(f"class-weight: the {given.loss} loss has no classes")
    of_loss = {"delta": given.huber_delta, "power": given.tweedie_power, "theta": given.theta}
    chosen = {
        "loss": "logistic" if given.loss == "softmax" else given.loss,
        "fit_intercept": not given.no_intercept,
        "tol": given.tol,
        "max_iter": given.epochs,
        "checkpoint": given.checkpoint,
        "resume": given.resume,
        "callback": heard,
        **_penalty(given),
        **({"class_weight": _class_weight(given.class_weight)} if classes else of_loss),
    }
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

    beside = {"weights": given.weights, "offsets": given.offset}
    files(given.files, **beside)
    log = _Log(given.log)
    model = _estimator(given, log, say)
    begun = time.monotonic()
    if given.scheduler is not None:
        try:
            client = Client(given.scheduler, timeout=given.timeout)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(f"no scheduler answers at {given.scheduler}: {error}") from None
    else:
        client = Client(n_workers=given.workers, threads_per_worker=1, dashboard_address=None)
    with client:
        model.client = client
        how = {"label": given.label, "header": given.header, "format": given.data_format}
        model.fit_files(given.files, n_features=given.features, sample_weight=given.weights, offset=given.offset, **how)
    figures = dict(model.certificate_)
    log.write("end", passes=model.passes_, elapsed=time.monotonic() - begun, **figures)
    say(f"{figures['status']}: F {figures['F']!r}, {figures['nnz']} nonzero, {model.passes_} passes, "
        f"{time.monotonic() - begun:.1f} s")
    if given.out:
        model.save(given.out)
    return 0


def main(arguments=None):
    """Runs the command: 0 done, 2 what was given is wrong, 1 anything else."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for at, word in enumerate(words[:-1]):
        if word == "--class-weight":
            # Labels may be negative, which would look like a flag.
            words[at : at + 2] = [f"{word}={words[at + 1]}"]
            break
    given = parser().parse_args(words)
    try:
        return _fit(given)
    except ClusterError as error:
        status, text = 1, error
    except (ObproxError, ValueError, OSError) as error:
        status, text = 2, error
    except ImportError as error:
        status, text = 2, f"{error}: pip install 'obprox[dask]'"
    print(f"error: {text}", file=sys.stderr)
    return status
