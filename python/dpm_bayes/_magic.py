"""`%%dpm NAME`: a cell that holds a model."""

from __future__ import annotations

from typing import Any

from ._errors import InputError
from ._model import Model


def load(shell: Any) -> None:
    def dpm(line: str, cell: str) -> None:
        """Checks the cell and binds it, as a Model, to the name after `%%dpm`."""
        name = line.strip()
        if not name.isidentifier():
            raise InputError("`%%dpm` expects the name to bind the model to, as in `%%dpm wells`")
        model = Model(cell, name)
        model.check()
        shell.push({name: model})

    shell.register_magic_function(dpm, "cell", "dpm")
