"""Models, and what the program says about them before there are data."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path
from typing import Any, Mapping, Union

from . import _program
from ._errors import Diagnostic, InputError, ModelError
from ._program import StrPath
from ._results import Answer
from ._tables import source as source_of

Constants = Union[Mapping[str, Any], StrPath, None]


class Model:
    """A model as text.

    Parameters
    ----------
    source : str
        The program, from `record` to `model`.
    name : str
        What runs and ledgers call it.

    Attributes
    ----------
    path : pathlib.Path
        The file that the program reads. Constants next to it (`NAME.constants.json`) are taken
        where no others are given.
    """

    def __init__(self, source: str, name: str = "model") -> None:
        if not name or set(name) & set("/\\\0"):
            raise InputError("a model's name is part of a file's: leave slashes out")
        self.name = name
        self.path = _program.keep(f"{name}.dpm", source)
        self._text: str | None = source

    @classmethod
    def read(cls, path: StrPath) -> Model:
        """The model in a file."""
        model = cls.__new__(cls)
        model.path = Path(path)
        model.name = model.path.stem
        model._text = None
        return model

    @property
    def source(self) -> str:
        if self._text is not None:
            return self._text
        return self.path.read_text(encoding="utf-8")

    def check(self, constants: Constants = None, data: Any = None, **flags: Any) -> Answer:
        """Types, stages, and how the likelihood depends on records: `dpm check`.

        Parameters
        ----------
        constants : dict or path, optional
        data : table, optional
            For the curator only: which rows are missing, out of bounds or cannot be read. The
            answer is about private rows, and no guarantee covers it.
        **flags
            `columns`, `unit`, `on_bad_rows`, ... as `dpm check --help` lists them.

        Returns
        -------
        Answer
            With `diagnostics` (a list of Diagnostic), `statements`, `sensitivity` and so on.

        Raises
        ------
        ModelError
            If the model is wrong; its text shows where.
        """
        table = None if data is None else source_of(data, self._used)
        if table:
            flags["data"] = table.paths
        command = ["check", "--quiet", "--color=never", "--format=json"]
        more = _program.arguments({"constants": constants, **flags})
        done = _program.run([*command, *more, "--", os.fspath(self.path)], table)
        if done.interrupted:
            raise _program.failure(done)
        # JSON comes with exit code 2 as well, if the model is what is wrong.
        found = json.loads(done.out) if done.out.startswith("{") else {}
        diagnostics = [Diagnostic.of(d) for d in found.get("diagnostics", ())]
        if done.code and any(d.severity == "error" for d in diagnostics):
            raise ModelError(self._shown(done.err) or self._carets(), diagnostics)
        if done.code:
            raise _program.failure(done)
        found["diagnostics"] = diagnostics
        if table:
            _program.warn(done.err)
            return Answer(found)
        return Answer(found, lambda: self._text_of_check(constants))

    def _carets(self) -> str:
        done = _program.run(["check", "--color=never", "--", os.fspath(self.path)])
        return self._shown(done.err)

    def _text_of_check(self, constants: Constants) -> str:
        return self._shown(_program.call("check", self.path, constants=constants))

    def _shown(self, text: str) -> str:
        """Without the folder of a model that was given as text."""
        if self._text is not None:
            text = text.replace(f"{self.path.parent}{os.sep}", "")
        return text.strip()

    def info(self, constants: Constants = None) -> Answer:
        """The model's constants, columns, parameters and so on: `dpm info`."""
        return Answer(_program.answer("info", self.path, constants=constants))

    def format(self) -> str:
        """The model in the one form that all have, as `dpm fmt` writes it; no file changes."""
        text = self.source.encode()

        def write(pipe: _program.Pipe) -> None:
            pipe.write(text)

        return _program.call("fmt", source=_program.Source(["-"], write))

    def log_prob(
        self, data: Any, points: Any, *, not_private: bool = False, constants: Constants = None, **flags: Any
    ) -> Any:
        """Log density and gradient at given points, NOT PRIVATE: `dpm log-prob`.

        Parameters
        ----------
        points : list of dict
            Such as `[{"params": {"alpha": 1.0, "beta": [0.5, 2]}}]`.
        not_private : bool
            Must be True: the answer is exact.
        """
        table = source_of(data, self._used)
        return _program.answer(
            "log-prob", self.path, source=table, points=points, not_private=not_private, constants=constants, **flags
        )

    def _used(self) -> set[str]:
        return {column["name"] for column in self.info()["record"]}

    def __repr__(self) -> str:
        return f"dpm.Model({self.name!r})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.source)}</pre>"


ModelLike = Union[Model, StrPath]


def model_of(model: ModelLike) -> Model:
    """A path, or source text: a string with a line feed."""
    if isinstance(model, Model):
        return model
    if isinstance(model, str) and "\n" in model:
        return Model(model)
    return Model.read(model)
