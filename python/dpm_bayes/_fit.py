"""A run: its draws, what is promised of them, and whether they can be used."""

from __future__ import annotations

import csv
import html
import json
import shutil
import webbrowser
import weakref
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping

from . import _program
from ._errors import InputError
from ._program import StrPath
from ._results import Answer, frame

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[np.float64]]

# What arviz calls the sampler's columns.
_STATISTICS = {
    "accept_stat": "acceptance_rate",
    "stepsize": "step_size",
    "n_leapfrog": "n_steps",
    "treedepth": "tree_depth",
    "divergent": "diverging",
}


@dataclass(frozen=True)
class Verdict:
    """One finding about a run, as docs/diagnostics.md explains them.

    Attributes
    ----------
    code : str
        Its kind, such as `convergence`.
    severity : str
        `good`, `note`, `warning` or `problem`.
    text : str
        The finding in a sentence.
    advice : str or None
        What would help.
    parameters : tuple of str
        Those that it is about.
    value, threshold : float or None
        What was found, and from where on it is a finding.
    """

    code: str
    severity: str
    text: str
    advice: str | None = None
    parameters: tuple[str, ...] = ()
    value: float | None = None
    threshold: float | None = None

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Verdict:
        return cls(
            code=found["kind"],
            severity=found["severity"],
            text=found["sentence"],
            advice=found.get("advice"),
            parameters=tuple(found.get("parameters", ())),
            value=found.get("value"),
            threshold=found.get("threshold"),
        )


class Report:
    """The page about a run, which shows itself in a notebook."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def html(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def open(self) -> None:
        """Shows the page in a browser."""
        webbrowser.open(self.path.resolve().as_uri())

    def __repr__(self) -> str:
        return f"dpm.Report({str(self.path)!r})"

    def _repr_html_(self) -> str:
        # In a frame of its own, so that its styles and the notebook's leave each other alone.
        return (
            '<iframe style="width: 100%; height: 40em; border: 1px solid #ccc; background: #fff" '
            f'sandbox="allow-same-origin allow-popups" srcdoc="{html.escape(self.html)}"></iframe>'
        )


class Fit:
    """A run of `dpm sample`, read from its directory. Reading costs no privacy.

    Parameters
    ----------
    directory : path
        The directory of the run.
    """

    def __init__(self, directory: StrPath) -> None:
        self.directory = Path(directory)
        if not (self.directory / "privacy.json").is_file():
            raise InputError(f"`{directory}` is not the directory of a finished run: it has no privacy.json")

    @classmethod
    def _temporary(cls, directory: Path) -> Fit:
        """A run whose files go with the object."""
        fit = cls(directory)
        weakref.finalize(fit, shutil.rmtree, directory.parent, ignore_errors=True)
        return fit

    @cached_property
    def privacy(self) -> dict[str, Any]:
        """privacy.json: what is promised, what was released, and how it was accounted for."""
        return dict(self._read("privacy.json"))

    @cached_property
    def config(self) -> dict[str, Any]:
        """config.json: all settings of the run."""
        return dict(self._read("config.json"))

    def _read(self, name: str) -> Any:
        return json.loads((self.directory / name).read_text(encoding="utf-8"))

    @cached_property
    def _diagnosis(self) -> dict[str, Any]:
        return dict(_program.answer("diagnose", self.directory, format="json"))

    @property
    def decision(self) -> str:
        """`use`, `use_with_care` or `do_not_use`."""
        return str(self._diagnosis["decision"])

    @property
    def ok(self) -> bool:
        """Whether the draws can be used, if need be with care (see `verdicts`)."""
        return self.decision != "do_not_use"

    @property
    def verdicts(self) -> list[Verdict]:
        """All findings, the most severe first."""
        return [Verdict.of(verdict) for verdict in self._diagnosis["verdicts"]]

    def diagnose(self) -> Answer:
        """`dpm diagnose`: the decision, the verdicts and what would help."""
        return Answer(self._diagnosis, lambda: _program.call("diagnose", self.directory))

    @cached_property
    def _chains(self) -> tuple[list[str], NDArray[np.float64]]:
        """The columns, and an array [chain, draw, column]."""
        import numpy as np

        chains = []
        header: list[str] = []
        for i in range(1, len(list(self.directory.glob("chain-*.csv"))) + 1):
            header, chain = _table(self.directory / f"chain-{i}.csv")
            chains.append(chain)
        shortest = min(len(chain) for chain in chains)
        return header, np.stack([chain[:shortest] for chain in chains])

    @cached_property
    def draws(self) -> Arrays:
        """The draws of each parameter, as arrays [chain, draw, ...shape].

        Chains of an interrupted run are cut to the length of the shortest.
        """
        header, chains = self._chains
        return _shaped([(i, name) for i, name in enumerate(header) if not name.endswith("__")], chains)

    @cached_property
    def sample_stats(self) -> Arrays:
        """What the sampler reports of each draw, under arviz's names, as arrays [chain, draw]."""
        header, chains = self._chains
        named = [(i, name[:-2]) for i, name in enumerate(header) if name.endswith("__")]
        # The log density is not released.
        return {
            _STATISTICS.get(name, name): chains[:, :, i] != 0 if name == "divergent" else chains[:, :, i]
            for i, name in named
            if name != "lp"
        }

    def __getitem__(self, parameter: str) -> NDArray[np.float64]:
        return self.draws[parameter]

    def summary(self) -> Any:
        """Mean, standard deviation, quantiles, effective sample sizes and R-hat per parameter.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or Table
            Of the library that is imported, or else installed.
        """
        return frame(_program.answer("summary", self.directory, format="json"))

    @property
    def report(self) -> Report:
        """The page about the run; made where the run was without one."""
        path = self.directory / "report.html"
        if not path.exists():
            _program.call("report", self.directory)
        return Report(path)

    def _columns(self) -> dict[str, NDArray[Any]]:
        """One table: chain, draw and a column per element, as `dpm convert` names them."""
        import numpy as np

        header, draws = self._chains
        chains, length = draws.shape[:2]
        table: dict[str, NDArray[Any]] = {
            "chain": np.repeat(np.arange(chains), length),
            "draw": np.tile(np.arange(length), chains),
        }
        for i, name in enumerate(header):
            if not name.endswith("__"):
                table[_bracket(name)] = draws[:, :, i].ravel()
        return table

    def to_pandas(self) -> Any:
        """The draws as a pandas frame with columns `chain`, `draw`, `alpha`, `beta[1]`, ..."""
        import pandas

        return pandas.DataFrame(self._columns())

    def to_polars(self) -> Any:
        """The draws as a polars frame with columns `chain`, `draw`, `alpha`, `beta[1]`, ..."""
        import polars

        return polars.DataFrame(self._columns())

    def to_arrow(self) -> Any:
        """The draws as a pyarrow table, whose metadata carry the privacy statement and report."""
        import pyarrow

        return pyarrow.table(self._columns()).replace_schema_metadata(self._promise())

    def _promise(self) -> dict[str, str]:
        return {
            "privacy_statement": self.privacy["statement"],
            "privacy_report": json.dumps(self.privacy),
        }

    def to_arviz(self) -> Any:
        """The groups `posterior` and `sample_stats` for arviz.

        Returns
        -------
        xarray.DataTree or arviz.InferenceData
            What the installed arviz uses: a tree from version 1 on. Attributes carry the
            privacy statement and report.
        """
        import arviz
        import xarray

        groups = {}
        for name, arrays in (("posterior", self.draws), ("sample_stats", self.sample_stats)):
            variables = {
                key: (("chain", "draw", *(f"{key}_dim_{k}" for k in range(values.ndim - 2))), values)
                for key, values in arrays.items()
            }
            chains, length = self._chains[1].shape[:2]
            coordinates = {"chain": range(chains), "draw": range(length)}
            groups[name] = xarray.Dataset(variables, coordinates, attrs=self._promise())
        if arviz.__version__.startswith("0."):
            return arviz.InferenceData(**groups)
        return xarray.DataTree.from_dict(groups)

    def convert(self, to: str, out: StrPath | None = None, **flags: Any) -> Path:
        """Writes the draws for other libraries: `dpm convert`.

        Parameters
        ----------
        to : {"zarr", "parquet", "csv"}
            The format.
        out : path
            Next to the run unless given.
        **flags
            `overwrite`.

        Returns
        -------
        pathlib.Path
            What was written.
        """
        path = Path(out) if out is not None else self.directory.with_name(f"{self.directory.name}.{to}")
        _program.call("convert", self.directory, to=to, out=path, **flags)
        return path

    def compare(self, reference: Fit | StrPath) -> Answer:
        """Holds the draws against a reference's: see `dpm.compare`.

        Parameters
        ----------
        reference : Fit or path
            A run, or a CSV with a column per parameter.

        Returns
        -------
        Answer
            With `mmd` and, by parameter, the errors of mean and standard deviation.
        """
        return compare(self, reference)

    def generate(self, model: Any = None, **settings: Any) -> Arrays:
        """Generated quantities: see `dpm.generate`.

        Parameters
        ----------
        model : Model, path or str
            The run's own unless given.
        **settings
            Those of `dpm.generate`.

        Returns
        -------
        dict of numpy.ndarray
            Arrays [chain, draw, ...shape].
        """
        from ._commands import generate

        return generate(model if model is not None else self.directory / "model.dpm", self, **settings)

    def __fspath__(self) -> str:
        return str(self.directory)

    def __repr__(self) -> str:
        chains, length = self._chains[1].shape[:2]
        promise = f"epsilon {self.privacy['epsilon']} at delta {self.privacy['delta']}"
        if not self.privacy["private"]:
            promise = "NOT PRIVATE"
        return f"<dpm.Fit: {chains} chains of {length} draws, {promise}, {self.decision}>"

    def _repr_html_(self) -> str:
        lines = [f"<b>{html.escape(repr(self)[1:-1])}</b>"]
        lines += [f"{v.severity}: {html.escape(v.text)}" for v in self.verdicts if v.severity != "good"]
        table = self.summary()
        return "".join(f"<p>{line}</p>" for line in lines) + str(table._repr_html_())


def compare(run: Fit | StrPath, reference: Fit | StrPath) -> Answer:
    """How far a run's draws are from reference draws: `dpm compare`.

    Parameters
    ----------
    run : Fit or path
    reference : Fit or path
        A run, or a CSV with a column per parameter.

    Returns
    -------
    Answer
        With `mmd` and, by parameter, the errors of mean and standard deviation.
    """
    return Answer(_program.answer("compare", run, reference))


def _table(path: Path) -> tuple[list[str], NDArray[np.float64]]:
    """The header and the rows of a CSV with comments, as Stan writes it."""
    import numpy as np

    with open(path, encoding="utf-8", newline="") as file:
        line = next(line for line in file if not line.startswith("#"))
        header = next(csv.reader([line]))
        rows = [line for line in file if not line.startswith("#")]
    if not rows:
        return header, np.empty((0, len(header)))
    return header, np.loadtxt(rows, delimiter=",", ndmin=2, comments=None)


def _shaped(columns: list[tuple[int, str]], chains: NDArray[np.float64]) -> Arrays:
    """`beta.1`, `beta.2` and so on as one array."""
    import numpy as np

    elements: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
    for i, name in columns:
        variable, *indices = name.split(".")
        elements.setdefault(variable, []).append((i, tuple(int(index) - 1 for index in indices)))
    arrays: Arrays = {}
    for variable, places in elements.items():
        shape = tuple(max(sizes) + 1 for sizes in zip(*(place for _, place in places)))
        array = np.empty((*chains.shape[:2], *shape))
        for i, place in places:
            at: tuple[Any, ...] = (..., *place)
            array[at] = chains[:, :, i]
        arrays[variable] = array
    return arrays


def _bracket(name: str) -> str:
    variable, *indices = name.split(".")
    return f"{variable}[{','.join(indices)}]" if indices else variable
