"""What can go wrong. No message holds a value of the data."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping


class DpmError(Exception):
    """A command of the program that failed.

    Attributes
    ----------
    code : int
        The program's exit code: 1 a failed run, 2 wrong usage or bad input, 3 a refusal by a
        budget.
    directory : pathlib.Path or None
        The run that was left unfinished; `dpm.resume` goes on with it, at no further charge.
    """

    code = 1

    def __init__(self, message: str, directory: Path | None = None) -> None:
        super().__init__(message)
        self.directory = directory


class InputError(DpmError, ValueError):
    """Wrong usage, or input that cannot be read."""

    code = 2


@dataclass(frozen=True)
class Diagnostic:
    """What the program says about a place in a model.

    Lines and columns count from 1; `end_column` is one past the last character. `notes` are
    about other places, as dicts with `line`, `column`, `end_line`, `end_column` and `message`.
    """

    code: str
    severity: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int
    label: str | None = None
    help: str | None = None
    notes: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Diagnostic:
        known = {key: found[key] for key in cls.__dataclass_fields__ if key in found}
        return cls(**{**known, "notes": tuple(found.get("notes", ()))})


class ModelError(InputError):
    """A model that is wrong. Its text shows the places, with carets.

    Attributes
    ----------
    diagnostics : list of Diagnostic
        Errors, and warnings if there are any.
    """

    def __init__(self, message: str, diagnostics: list[Diagnostic]) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the places in the model, not those in this package."""
        return str(self).splitlines()


class BudgetExceeded(DpmError):
    """A privacy budget refuses the run. Nothing was released, and nothing is charged.

    Attributes
    ----------
    requested : float or None
        What the run would add to `spent`, in epsilon at the budget's delta.
    spent, remaining : float or None
        Of the budget's epsilon: the ledger's, or that of the run itself.
    room : float or None
        The epsilon that a run may cost by itself, at the ledger's delta, to fit.
    """

    code = 3

    def __init__(self, message: str, balance: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.requested: float | None = balance.get("requested")
        self.spent: float | None = balance.get("spent")
        self.remaining: float | None = balance.get("remaining")
        self.room: float | None = balance.get("room")


class Interrupted(KeyboardInterrupt):
    """A run that Ctrl-C has stopped. The draws so far are in its directory.

    Attributes
    ----------
    directory : pathlib.Path or None
        The run: `dpm.Fit(directory)` reads its draws, and `dpm.resume(directory)` goes on with
        it, at no further charge. None if nothing was written.
    """

    code = 130

    def __init__(self, message: str, directory: Path | None = None) -> None:
        super().__init__(message)
        self.directory = directory


class DpmWarning(UserWarning):
    """What the program says even if it is told to be quiet: NOT PRIVATE, or not to be used."""
