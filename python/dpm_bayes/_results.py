"""Small things to look at: answers of the program, and tables."""

from __future__ import annotations

import html
import json
import sys
from importlib import util
from typing import Any, Callable, Iterator, Mapping


class Answer(dict[str, Any]):
    """The JSON that a command prints, as a dict whose keys are attributes too; shown as the
    command shows it to people."""

    def __init__(self, found: Mapping[str, Any], text: Callable[[], str] | None = None) -> None:
        super().__init__(found)
        self._as_text = text

    def __getattr__(self, key: str) -> Any:
        try:
            return self[key]
        except KeyError:
            raise AttributeError(f"there is no {key!r}, only {', '.join(self)}") from None

    @property
    def text(self) -> str:
        """What the command prints for people, or else the JSON."""
        if self._as_text is None:
            return json.dumps(self, indent=2, default=str, ensure_ascii=False)
        return self._as_text().rstrip()

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


class Table:
    """Rows by name, where there is neither pandas nor polars: `table["mean"]` is a list."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self.columns = list(rows[0]) if rows else []

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> list[Any]:
        return [row[column] for row in self.rows]

    def _cells(self) -> list[list[str]]:
        return [[_shown(row[column]) for column in self.columns] for row in self.rows]

    def __repr__(self) -> str:
        lines = [self.columns, *self._cells()]
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(line, widths)) for line in lines)

    def _repr_html_(self) -> str:
        def row(cells: list[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row(cells, "td") for cells in self._cells())
        return f"<table><thead>{row(self.columns, 'th')}</thead><tbody>{body}</tbody></table>"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def frame(rows: list[dict[str, Any]]) -> Any:
    """A pandas or polars frame: of the one that is imported, else of the one that is installed;
    else a Table."""
    names = ("pandas", "polars")
    name = next((n for n in names if n in sys.modules), None)
    name = name or next((n for n in names if util.find_spec(n)), None)
    if name is None:
        return Table(rows)
    from importlib import import_module

    return import_module(name).DataFrame(rows)
