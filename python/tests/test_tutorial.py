"""The tutorial runs from its first cell to its last."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

TUTORIAL = Path(__file__).parents[1] / "tutorial.ipynb"


def test_tutorial():
    notebook = nbformat.read(TUTORIAL, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear its outputs"
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(TUTORIAL.parent)}}).execute()
    shown = str([cell.get("outputs") for cell in notebook.cells])
    assert "<iframe" in shown and "error[E0201]" in shown and "spent 1.000" in shown
