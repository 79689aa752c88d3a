"""The privacy budget of a data set, over all runs on it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Sequence

from . import _program
from ._fit import Fit
from ._program import StrPath
from ._results import Answer


class Ledger:
    """The ledger of a data set.

    Parameters
    ----------
    path : path
        A file that `Ledger.create` or `dpm ledger create` has made. `path` with `.head` belongs
        to it: move and back up both together.
    """

    def __init__(self, path: StrPath) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, path: StrPath, *, epsilon: float, delta: float, **flags: Any) -> Ledger:
        """Makes a ledger.

        Parameters
        ----------
        epsilon, delta : float
            Budget of all runs together.
        **flags
            `relation`, `unit`, `accountant` and `order`, as `dpm ledger create --help` has them.

        Raises
        ------
        DpmError
            If there is one already.
        """
        _program.call("ledger create", path, epsilon=epsilon, delta=delta, **flags)
        return cls(path)

    def show(self) -> Answer:
        """The charges, the budget spent and the budget left: `dpm ledger show`."""
        found = _program.answer("ledger show", self.path, format="json")
        return Answer(found, lambda: _program.call("ledger show", self.path))

    @property
    def spent(self) -> float:
        """Epsilon spent, at the ledger's delta."""
        return float(self.show()["spent"])

    @property
    def remaining(self) -> float:
        """Epsilon left, at the ledger's delta."""
        return float(self.show()["remaining"])

    def verify(self, against: Sequence[Fit | StrPath] = ()) -> str:
        """Checks that the ledger is whole and keeps its budget: `dpm ledger verify`.

        Parameters
        ----------
        against : list of Fit or path
            Runs whose charges it must hold.

        Raises
        ------
        DpmError
            If it does not hold.
        """
        runs = [against] if isinstance(against, (str, os.PathLike)) else list(against)
        return _program.call("ledger verify", self.path, against=runs)

    def adopt(self) -> None:
        """Continues a ledger whose head file is lost, with a permanent note in it."""
        _program.call("ledger adopt", self.path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"dpm.Ledger({str(self.path)!r})"

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()
