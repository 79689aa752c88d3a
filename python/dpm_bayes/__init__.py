"""Differentially private Bayesian modelling.

    import dpm_bayes as dpm

    budget = dpm.Ledger.create("survey.ledger", epsilon=4, delta=1e-6)
    fit = dpm.sample("wells.dpm", frame, epsilon=1, ledger=budget)
    fit.summary()

Keyword arguments are the flags of the program `dpm`, with `_` for `-`.
"""

from __future__ import annotations

from typing import Any

from ._commands import (
    account,
    calibrate,
    check,
    convert,
    diagnose,
    generate,
    info,
    new,
    plan,
    pool,
    resume,
    sample,
    sbc,
    score,
    simulate,
    synth,
    tune,
)
from ._errors import BudgetExceeded, Diagnostic, DpmError, DpmWarning, InputError, Interrupted, ModelError
from ._fit import Fit, Report, Verdict, compare
from ._ledger import Ledger
from ._model import Model
from ._program import VERSION as __version__
from ._program import program
from ._progress import Progress
from ._results import Answer, Table

__all__ = [
    "Answer",
    "BudgetExceeded",
    "Diagnostic",
    "DpmError",
    "DpmWarning",
    "Fit",
    "InputError",
    "Interrupted",
    "Ledger",
    "Model",
    "ModelError",
    "Progress",
    "Report",
    "Table",
    "Verdict",
    "__version__",
    "account",
    "calibrate",
    "check",
    "compare",
    "convert",
    "diagnose",
    "generate",
    "info",
    "new",
    "plan",
    "pool",
    "program",
    "resume",
    "sample",
    "sbc",
    "score",
    "simulate",
    "synth",
    "tune",
]


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext dpm_bayes` adds the magic `%%dpm NAME`."""
    from ._magic import load

    load(shell)
