"""Private tables on their way to the program: Arrow (or CSV) through a pipe, never on a disk."""

from __future__ import annotations

import csv
import io
import os
from itertools import islice
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

from ._errors import InputError
from ._program import Pipe, Source

EXPECTED = (
    "expected a path (or several), a dict of columns, a cursor, or a table of polars, pandas, "
    "pyarrow, DuckDB or anything else with `__arrow_c_stream__`"
)


def source(data: Any, used: Callable[[], set[str]]) -> Source:
    """What hands `data` over; `used`: the variables that the model reads."""
    if isinstance(data, (str, os.PathLike)):
        return Source([os.fspath(data)])
    if isinstance(data, (list, tuple)) and data and all(isinstance(d, (str, os.PathLike)) for d in data):
        return Source([os.fspath(path) for path in data])
    return Source(["-"], _writer(data, used))


def _imported(name: str) -> Any:
    """An optional library, None where it is not installed."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _writer(data: Any, used: Callable[[], set[str]]) -> Callable[[Pipe], None]:
    kind = type(data).__module__.split(".")[0]
    if kind == "polars" and hasattr(data, "collect"):
        lazy = data
        return lambda pipe: _polars(pipe, lazy.collect(), used)
    if kind == "polars" and hasattr(data, "write_ipc_stream"):
        return lambda pipe: _polars(pipe, data, used)
    if kind == "pandas" and hasattr(data, "columns"):
        # By position: names need not be unique.
        columns = {i: data.iloc[:, i] for i in range(data.shape[1])}
        return lambda pipe: _columns(pipe, [str(n) for n in data.columns], list(columns.values()), used)
    if kind in ("polars", "pandas"):
        raise InputError(f"{EXPECTED}; found a {type(data).__name__} of {kind}")
    if isinstance(data, Mapping):
        names, values = _split(data)
        return lambda pipe: _columns(pipe, names, values, used)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        arrow, polars = _imported("pyarrow"), _imported("polars")
        if arrow:
            return lambda pipe: _stream(pipe, arrow, data)
        if polars:
            return lambda pipe: _polars(pipe, polars.DataFrame(data), used)
    if hasattr(data, "fetchmany") and getattr(data, "description", None):
        return lambda pipe: _csv(pipe, [column[0] for column in data.description], _fetched(data))
    if hasattr(data, "__arrow_c_stream__"):
        raise InputError(f"a {type(data).__name__} needs pyarrow or polars: pip install 'dpm-bayes[arrow]'")
    raise InputError(f"{EXPECTED}; found a {type(data).__name__}")


def _unusable(name: str, used: Callable[[], set[str]]) -> None:
    """Columns that Arrow cannot hold are left out; the model must not want them."""
    if name.split(".")[0].split("[")[0] in used():
        raise InputError(
            f"column `{name}` holds values of several types, or of one that Arrow does not have: "
            "make a number or text of each"
        )


def _polars(pipe: Pipe, frame: Any, used: Callable[[], set[str]]) -> None:
    objects = [name for name, kind in frame.schema.items() if str(kind).startswith("Object")]
    for name in objects:
        _unusable(name, used)
    frame.drop(objects).write_ipc_stream(pipe)


def _stream(pipe: Pipe, arrow: Any, data: Any) -> None:
    if hasattr(data, "__arrow_c_stream__"):
        reader = arrow.RecordBatchReader.from_stream(data)
    else:
        reader = arrow.table(data).to_reader()
    with arrow.ipc.new_stream(pipe, reader.schema) as sink:
        for batch in reader:
            sink.write_batch(batch)


def _split(data: Mapping[Any, Any]) -> tuple[list[str], list[Any]]:
    """A matrix `x` becomes the columns `x.1`, `x.2` and so on, as the program reads them."""
    names: list[str] = []
    values: list[Any] = []
    for name, column in data.items():
        if getattr(column, "ndim", 1) == 2:
            for i in range(column.shape[1]):
                names.append(f"{name}.{i + 1}")
                values.append(column[:, i])
        else:
            names.append(str(name))
            values.append(column)
    if len({len(column) for column in values}) > 1:
        raise InputError("the columns differ in length: give each as many values as there are rows")
    return names, values


def _columns(
    pipe: Pipe, names: list[str], values: Sequence[Any], used: Callable[[], set[str]]
) -> None:
    arrow = _imported("pyarrow")
    if not arrow:
        _csv(pipe, names, zip(*map(_cells, values)))
        return
    arrays = {}
    for i, (name, column) in enumerate(zip(names, values)):
        try:
            arrays[i] = arrow.array(column, from_pandas=True)
        except (arrow.ArrowException, TypeError, ValueError, OverflowError):
            pass
        if i not in arrays:
            _unusable(name, used)
    _stream(pipe, arrow, arrow.table(list(arrays.values()), names=[names[i] for i in arrays]))


def _cells(column: Any) -> Iterator[Any]:
    """A column's values, of pandas and numpy as Python's own."""
    if hasattr(column, "isna") and hasattr(column, "astype"):
        return iter(column.astype(object).where(~column.isna(), None).tolist())
    return iter(column.tolist() if hasattr(column, "tolist") else column)


def _fetched(cursor: Any) -> Iterator[Sequence[Any]]:
    while rows := cursor.fetchmany(10_000):
        yield from rows


def _csv(pipe: Pipe, names: list[str], rows: Iterable[Iterable[Any]]) -> None:
    """Without a library that writes Arrow. Numbers keep all their digits."""
    rows = iter(rows)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    while True:
        block = [[_cell(value) for value in row] for row in islice(rows, 10_000)]
        # A row of one empty cell would be quoted, which reads the same.
        writer.writerows(block)
        pipe.write(text.getvalue().encode())
        text.seek(0)
        text.truncate()
        if not block:
            return


def _cell(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return repr(float(value))
    cell = str(value)
    if "\n" in cell or "\r" in cell:
        raise InputError("text with line feeds needs pyarrow: pip install 'dpm-bayes[arrow]'")
    return cell
