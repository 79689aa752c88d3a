"""The program's commands as functions. A keyword argument is the flag of its name, with `_` for
`-`; those that are not listed here are passed on as they are, and `dpm COMMAND --help` has them."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Mapping, Sequence

from . import _program
from ._fit import Fit, _shaped, _table
from ._ledger import Ledger
from ._model import Constants, Model, ModelLike, model_of
from ._program import StrPath
from ._progress import Reporter, Wanted
from ._results import Answer
from ._tables import source as source_of

if TYPE_CHECKING:
    from ._fit import Arrays

Relation = Literal["substitute", "add-remove", "zero-out"]


def sample(
    model: ModelLike,
    data: Any,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    relation: Relation | None = None,
    ledger: Ledger | StrPath | None = None,
    unit: str | None = None,
    algorithm: str | None = None,
    not_private: bool = False,
    chains: int | None = None,
    num_samples: int | None = None,
    num_warmup: int | None = None,
    constants: Constants = None,
    init: Any = None,
    columns: Any = None,
    on_bad_rows: Literal["error", "skip"] | None = None,
    seed: int | None = None,
    threads: int | None = None,
    out: StrPath | None = None,
    overwrite: bool = False,
    progress: Wanted = None,
    **flags: Any,
) -> Fit:
    """Draws from a private posterior: `dpm sample`.

    Parameters
    ----------
    model : Model, path or str
        A model, its file, or its source (a string with a line feed).
    data : table or path
        The private table: of polars, pandas, pyarrow or DuckDB, or anything with
        `__arrow_c_stream__`; a dict of columns, of which an array [row, k] is a matrix; a
        database cursor after its query; a path, or a list of paths. A table goes to the program
        through a pipe, and the package writes none of it to a disk.
    epsilon, delta : float
        Privacy budget of the whole run.
    relation : {"substitute", "add-remove", "zero-out"}
        How neighbouring data sets differ.
    ledger : Ledger or path
        The budget of these data: the run is charged to it, or refused.
    unit : str
        The column whose value the rows of one unit of privacy share.
    algorithm : str
        The sampler; `dp-laplace`, which needs no settings, unless given.
    not_private : bool
        Allow a sampler without privacy.
    chains, num_samples, num_warmup : int
        Number of chains, and of iterations of each that are kept and discarded.
    constants : dict or path
        Public constants.
    init : dict, list of dict, or path
        Initial values, one for all chains or one for each.
    columns : dict
        Names of columns in the data: `{"x": ["a", "b", "c"]}`.
    on_bad_rows : {"error", "skip"}
        Rows that cannot be read: stop, or treat them as missing.
    seed : int
        Of the public randomness; never of the noise.
    threads : int
        One per core unless given.
    out : path
        Directory of the run; a temporary one, which lasts as long as the Fit, unless given.
    overwrite : bool
        Replace an earlier run in `out`.
    progress : bool or callable
        True passes on what the program says as it runs, with a bar where tqdm is installed; a
        function is called with a `Progress` now and then. The messages tell how many records there
        are, so they are passed on by default on a terminal only, and not in notebooks, which keep
        them: there is a bar alone, where tqdm and ipywidgets are installed. An exception of the
        function's stops the run as Ctrl-C does, and is raised again.
    **flags
        Any other flag of `dpm sample`, such as `leapfrog_steps=5`.

    Returns
    -------
    Fit
        The run, with draws as arrays [chain, draw, ...shape].

    Raises
    ------
    ModelError
        If the model is wrong; its text shows where.
    InputError
        If the data or the settings are.
    BudgetExceeded
        If the ledger, or the epsilon of the run, does not allow it. Nothing was released.
    Interrupted
        On Ctrl-C, which is a KeyboardInterrupt; `dpm.resume` goes on with the run.
    DpmError
        If the run fails; `dpm.resume` goes on with what has a `directory`.
    """
    model = model_of(model)
    model.check(constants)
    table = source_of(data, model._used)
    del data  # not where tools that print a frame's variables would find it
    given = _program.arguments(
        dict(
            epsilon=epsilon,
            delta=delta,
            relation=relation,
            ledger=ledger,
            unit=unit,
            algorithm=algorithm,
            not_private=not_private,
            chains=chains,
            num_samples=num_samples,
            num_warmup=num_warmup,
            constants=constants,
            init=init,
            columns=columns,
            on_bad_rows=on_bad_rows,
            seed=seed,
            threads=threads,
            overwrite=overwrite,
            **flags,
        )
    )
    temporary = None if out is not None else tempfile.mkdtemp(prefix="dpm-")
    directory = Path(out if out is not None else Path(str(temporary), f"{model.name}-run"))
    try:
        places = [os.fspath(model.path), *table.paths]
        return _run([*given, f"--out={directory}", "--", *places], table, directory, temporary, ledger, progress)
    finally:
        # Draws that have been charged stay, and so does an unfinished run, which can be resumed.
        kept = any((directory / name).exists() for name in ("privacy.json", "unfinished"))
        if temporary and not kept:
            shutil.rmtree(temporary, ignore_errors=True)


def resume(
    run: Fit | StrPath,
    data: Any = None,
    *,
    threads: int | None = None,
    progress: Wanted = None,
    **flags: Any,
) -> Fit:
    """Goes on with a run that was interrupted or killed, at no further charge.

    Parameters
    ----------
    run : Fit or path
        The directory of the run.
    data : table, optional
        The same data again, if they were not read from a path.
    threads, progress, **flags
        As for `sample`; the program allows few others.

    Returns
    -------
    Fit
        The whole run, in the same directory.

    Raises
    ------
    InputError
        If there is nothing to resume, or the model or the number of records has changed.
    Interrupted
        On Ctrl-C; the run can be resumed again.
    """
    directory = Path(run)
    table = None
    if data is not None:
        table = source_of(data, lambda: model_of(directory / "model.dpm")._used())
        del data
    given = _program.arguments(dict(threads=threads, **flags))
    return _run([*given, f"--resume={directory}"], table, directory, None, None, progress)


def _run(
    arguments: list[str],
    table: _program.Source | None,
    directory: Path,
    temporary: str | None,
    ledger: StrPath | None,
    progress: Wanted,
) -> Fit:
    reporter = Reporter(progress)
    done = _program.run(["sample", "--color=never", *reporter.flags, *arguments], table, reporter)
    if done.code or done.interrupted:
        raise _program.failure(done, directory, ledger)
    if not reporter.talks:
        _program.warn(done.err)
    return Fit._temporary(directory) if temporary else Fit(directory)


def check(model: ModelLike, constants: Constants = None, data: Any = None, **flags: Any) -> Answer:
    """Types, stages, and how the likelihood depends on records: `dpm check`.

    Parameters
    ----------
    model : Model, path or str
        As for `sample`.
    constants, data, **flags
        As for `Model.check`.

    Returns
    -------
    Answer
        As from `Model.check`.

    Raises
    ------
    ModelError
        If the model is wrong; its text shows where.
    """
    return model_of(model).check(constants, data, **flags)


def info(model: ModelLike, constants: Constants = None) -> Answer:
    """The model's constants, columns, parameters and so on: `dpm info`.

    Parameters
    ----------
    model : Model, path or str
        As for `sample`.
    constants : dict or path
        Without them shapes that depend on them are not known.

    Returns
    -------
    Answer
        With `constants`, `record`, `parameters` and so on, which are lists.
    """
    return model_of(model).info(constants)


def plan(
    model: ModelLike,
    *,
    rows: int,
    epsilon: float | None = None,
    delta: float | None = None,
    ledger: Ledger | StrPath | None = None,
    constants: Constants = None,
    **flags: Any,
) -> Answer:
    """What a run would release and cost, without any data: `dpm plan`.

    Parameters
    ----------
    model, epsilon, delta, ledger, constants
        As for `sample`.
    rows : int
        Number of records that the run would have (of units, where `unit` is given).
    **flags
        Those of `sample` that matter to a plan.

    Returns
    -------
    Answer
        With `epsilon` and the `events`, which it shows as a table.

    Raises
    ------
    BudgetExceeded
        If the ledger does not allow the run.
    """
    given = dict(flags, rows=rows, epsilon=epsilon, delta=delta, ledger=ledger, constants=constants)
    return _without_data("plan", model, given)


def tune(
    model: ModelLike,
    *,
    rows: int,
    epsilon: float | None = None,
    delta: float | None = None,
    constants: Constants = None,
    progress: Wanted = None,
    **flags: Any,
) -> Answer:
    """Finds good settings on simulated records, without any data: `dpm tune`.

    Parameters
    ----------
    model, epsilon, delta, constants, progress
        As for `sample`.
    rows : int
        Number of records that the run would have.
    **flags
        `tries`, `public_sample` and so on, and those of `sample` that matter to a run.

    Returns
    -------
    Answer
        Its `settings` are keyword arguments for `sample`.
    """
    given = dict(flags, rows=rows, epsilon=epsilon, delta=delta, constants=constants, simulate=True)
    return _without_data("tune", model, given, progress)


def new(formula: str, family: str, metadata: Mapping[str, Any] | StrPath, name: str = "model") -> Model:
    """A model from a formula and a codebook: `dpm new`.

    Parameters
    ----------
    formula : str
        As in R, with what brms adds: `"y ~ x + (1 | site)"`.
    family : str
        The distribution of the outcome, such as `"bernoulli"` or `"poisson"`.
    metadata : dict or path
        The codebook: types, bounds and levels of the columns, such as
        `{"columns": {"x": {"type": "float", "lower": 0, "upper": 10}}}`.
    name : str
        What runs and ledgers call the model.

    Raises
    ------
    InputError
        If the formula cannot be read, or the codebook lacks something; its text says what.
    """
    return Model(_program.call("new", formula=formula, family=family, metadata=metadata), name)


def simulate(
    model: ModelLike, *, rows: int, out: StrPath, constants: Constants = None, parameters: Any = None, **flags: Any
) -> Answer:
    """Tables made up from a model, without any data: `dpm simulate`.

    Parameters
    ----------
    model, constants
        As for `sample`.
    rows : int
        Of each table.
    out : path
        Where to write, a name that ends in .csv or .parquet; the parameters go beside it.
    parameters : dict, list of dict, or path
        In place of draws from the prior.
    **flags
        `tables`, `run`, `metadata`, `public_sample`, `seed`, `overwrite`.

    Returns
    -------
    Answer
        `outcomes`: what the prior predicts.
    """
    given = dict(flags, rows=rows, out=out, constants=constants, parameters=parameters)
    return _without_data("simulate", model, given)


def sbc(
    model: ModelLike,
    *,
    rows: int,
    epsilon: float | None = None,
    delta: float | None = None,
    constants: Constants = None,
    out: StrPath | None = None,
    progress: Wanted = None,
    **flags: Any,
) -> Answer:
    """Runs on tables made up from a model, and whether they find what made these: `dpm sbc`.

    Parameters
    ----------
    model, epsilon, delta, constants
        As for `sample`.
    rows : int
        Of each table.
    out : path
        Where to keep ranks and pictures; nowhere unless given.
    progress : bool or callable
        As for `sample`.
    **flags
        `tables`, `simulate_from`, `no_reference` and so on, and those of `sample` that matter to a
        run.

    Returns
    -------
    Answer
        The file `sbc.json`: coverage and width by parameter.
    """
    model = model_of(model)
    model.check(constants)
    with tempfile.TemporaryDirectory(prefix="dpm-") as folder:
        place = Path(out if out is not None else Path(folder, "sbc"))
        given = dict(flags, rows=rows, epsilon=epsilon, delta=delta, constants=constants, out=place)
        reporter = Reporter(progress)
        argv = ["sbc", "--color=never", *reporter.flags, *_program.arguments(given), "--", os.fspath(model.path)]
        done = _program.run(argv, reporter=reporter)
        if done.code or done.interrupted:
            raise _program.failure(done)
        if not reporter.talks:
            _program.warn(done.err)
        return Answer(json.loads((place / "sbc.json").read_text(encoding="utf-8")))


def synth(run: Fit | StrPath, *, rows: int, out: StrPath, **flags: Any) -> Answer:
    """Synthetic tables from a run's released draws, free of charge: `dpm synth`.

    Parameters
    ----------
    run : Fit or path
    rows : int
        Of each table.
    out : path
        Where to write, a name that ends in .csv or .parquet.
    **flags
        `tables`, `metadata`, `public_sample`, `seed`, `overwrite`; `covariates`, the path of the data, with
        `epsilon`, `delta`, `relation`, `unit` and `ledger`.

    Returns
    -------
    Answer
        What the tables are good for and what not, as it stands beside them.
    """
    _program.call("synth", run, rows=rows, out=out, **flags)
    return Answer(json.loads(Path(out).with_suffix(".about.json").read_text(encoding="utf-8")))


def pool(file: StrPath, rule: Literal["full", "partial", "missing"] = "full", **flags: Any) -> Answer:
    """One estimate from those of several synthetic tables: `dpm pool`.

    Parameters
    ----------
    file : path
        A CSV with the columns `estimate` and `variance`, and perhaps `name`.
    rule : {"full", "partial", "missing"}
        Kind of the tables: synthetic, partly synthetic, or with imputed missing values.
    **flags
        `size_ratio`, as `dpm pool --help` has it.

    Returns
    -------
    Answer
        Estimates, their standard errors and intervals.
    """
    return Answer(_program.answer("pool", file, rule=rule, format="json", **flags))


def _without_data(command: str, model: ModelLike, flags: dict[str, Any], progress: Wanted = False) -> Answer:
    model = model_of(model)
    model.check(flags["constants"])
    reporter = Reporter(progress)
    argv = [*reporter.flags, *_program.arguments(flags), "--", os.fspath(model.path)]
    done = _program.run([command, "--color=never", "--format=json", *argv], reporter=reporter)
    if done.code or done.interrupted:
        raise _program.failure(done, ledger=flags.get("ledger"))
    # Tuning takes too long to be done again as text.
    shown = partial(_program.call, command, model.path, **flags) if command == "plan" else None
    return Answer(json.loads(done.out), shown)


def generate(
    model: ModelLike, run: Fit | StrPath, *, constants: Constants = None, out: StrPath | None = None, **flags: Any
) -> Arrays:
    """Generated quantities of a run's draws, predictions for public rows: `dpm generate`.

    Parameters
    ----------
    model : Model, path or str
        The run's model, with `generated quantities`.
    run : Fit or path
    constants : dict or path
        The public rows are constants.
    out : path
        Where to write generated-1.csv and so on; nowhere unless given.
    **flags
        `data` (a CSV of public rows), `seed` and `overwrite`.

    Returns
    -------
    dict of numpy.ndarray
        Arrays [chain, draw, ...shape].
    """
    import numpy as np

    model = model_of(model)
    model.check(constants)
    with tempfile.TemporaryDirectory(prefix="dpm-") as folder:
        place = Path(out if out is not None else folder)
        _program.call("generate", model.path, run, constants=constants, out=place, **flags)
        tables = [_table(place / f"generated-{i + 1}.csv") for i in range(len(list(place.glob("generated-*.csv"))))]
    header = tables[0][0]
    return _shaped(list(enumerate(header)), np.stack([rows for _, rows in tables]))


def score(
    run: Fit | StrPath,
    data: Any,
    epsilon: float,
    *,
    against: Sequence[Fit | StrPath] = (),
    delta: float | None = None,
    ledger: Ledger | StrPath | None = None,
    unit: str | None = None,
    statistic: str | Sequence[str] = (),
    **flags: Any,
) -> Answer:
    """How well runs predict records that they did not learn from: `dpm score`.

    Parameters
    ----------
    run : Fit or path
        A run that was sampled with `hold_out`.
    data : table or path
        The table that it was sampled from, in the same order: see `sample`.
    epsilon, delta : float
        Privacy budget of the scores.
    against : list of Fit or path
        Other runs, to be compared on the same records; `data` is a path then.
    ledger : Ledger or path
        The scores are charged to it, or refused.
    unit : str
        As the run was sampled with.
    statistic : str or list of str
        Expressions of a record's columns, such as `"y == 0"`: posterior predictive checks of their
        means (`statistics` of the answer).
    **flags
        Any other flag of `dpm score`, such as `clip="-8,0"`.

    Raises
    ------
    InputError
        If the run has learnt from these records, or the noise would drown the score.
    BudgetExceeded
        If the ledger does not allow it. Nothing was released.
    """
    table = source_of(data, lambda: model_of(Path(run) / "model.dpm")._used())
    del data
    others = [f"--against={Path(other)}" for other in against]
    settings = dict(epsilon=epsilon, delta=delta, ledger=ledger, unit=unit, statistic=statistic, **flags)
    given = _program.arguments(settings)
    argv = [*given, *others, "--", os.fspath(run), *table.paths]
    done = _program.run(["score", "--quiet", "--color=never", "--format=json", *argv], table)
    if done.code or done.interrupted:
        raise _program.failure(done, ledger=ledger)
    _program.warn(done.err)
    return Answer(json.loads(done.out))


def diagnose(run: Fit | StrPath) -> Answer:
    """Whether a run has converged, and what is wrong with it: `dpm diagnose`.

    Parameters
    ----------
    run : Fit or path
        The run or its directory.

    Returns
    -------
    Answer
        With `decision` and `verdicts`.
    """
    return Fit(os.fspath(run)).diagnose()


def convert(run: Fit | StrPath, to: str, out: StrPath | None = None, **flags: Any) -> Path:
    """Writes a run's draws for other libraries: `dpm convert`.

    Parameters
    ----------
    run : Fit or path
        The run or its directory.
    to, out, **flags
        As for `Fit.convert`.

    Returns
    -------
    pathlib.Path
        What was written.
    """
    return Fit(os.fspath(run)).convert(to, out, **flags)


def account(
    event: str | Sequence[str] | None = None,
    *,
    relation: Relation,
    epsilon: float | Sequence[float] | None = None,
    delta: float | Sequence[float] | None = None,
    **flags: Any,
) -> Any:
    """Epsilon or delta of releases: `dpm account`.

    Parameters
    ----------
    event : str or list of str
        Releases, such as `"gaussian:sensitivity=1,sigma=20,count=100"`; or none, with `events`, a
        file of them.
    relation : {"substitute", "add-remove", "zero-out"}
        How neighbouring data sets differ.
    epsilon, delta : float or list of float
        Find the other at this one, or at each of several.
    **flags
        `accountant`, `conversion` and `rdp_orders`, as `dpm account --help` has them.

    Returns
    -------
    dict, or list of dict for several numbers
    """
    return _program.answer("account", event=event, relation=relation, epsilon=epsilon, delta=delta, **flags)


def calibrate(
    event: str | Sequence[str] | None = None, *, relation: Relation, epsilon: float, delta: float, **flags: Any
) -> dict[str, Any]:
    """The noise that a budget asks for, or (`find="count"`) the repetitions it allows:
    `dpm calibrate`.

    Parameters
    ----------
    event : str or list of str
        Releases as for `account`, without `sigma` (or without `count`).
    relation : {"substitute", "add-remove", "zero-out"}
        How neighbouring data sets differ.
    epsilon, delta : float
        The budget.
    **flags
        `find` and others, as `dpm calibrate --help` has them.

    Returns
    -------
    dict
        With `sigma` or `count`, and the `epsilon` that is reached.
    """
    found = _program.answer("calibrate", event=event, relation=relation, epsilon=epsilon, delta=delta, **flags)
    return dict(found)
