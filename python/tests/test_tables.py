"""A table of every kind gives the same draws, and none is seen in what goes wrong."""

import csv
import sqlite3
import sys
import traceback

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from conftest import BERNOULLI, SEEDED, TABLE, WELLS

import dpm_bayes as dpm

BASE = duckdb.connect()
pytestmark = pytest.mark.filterwarnings("ignore::dpm_bayes.DpmWarning")

SHORT = {**SEEDED, "num_samples": 20, "no_report": True}


@pytest.fixture(scope="module")
def wells():
    return dpm.sample(WELLS, TABLE, **SHORT)["beta"]


def rows():
    with open(TABLE, newline="") as file:
        return list(csv.DictReader(file))


def columns():
    return {name: [float(row[name]) for row in rows()] for name in ("switched", "dist", "arsenic", "educ")}


def of_pandas():
    frame = pandas.read_csv(TABLE)
    # Not read by the model: one column that Arrow cannot hold, one that the program does not read.
    frame["mixed"] = [1, "a"] * (len(frame) // 2)
    frame["day"] = pandas.Timestamp("2026-01-01")
    return frame


def of_sqlite():
    base = sqlite3.connect(":memory:")
    of_pandas()[["switched", "dist", "arsenic", "educ"]].to_sql("wells", base)
    return base.execute("select * from wells")


class Capsule:
    """Anything that exports Arrow's stream."""

    def __arrow_c_stream__(self, requested_schema=None):
        return pyarrow.table(columns()).__arrow_c_stream__(requested_schema)


KINDS = {
    "polars": lambda: polars.read_csv(TABLE),
    "lazy polars": lambda: polars.scan_csv(TABLE),
    "pandas": of_pandas,
    "pyarrow table": lambda: pyarrow.table(columns()),
    "pyarrow batch": lambda: pyarrow.table(columns()).to_batches()[0],
    "pyarrow reader": lambda: pyarrow.table(columns()).to_reader(max_chunksize=100),
    "duckdb relation": lambda: BASE.sql(f"select * from '{TABLE}'"),
    "duckdb cursor": lambda: duckdb.connect().execute(f"select * from '{TABLE}'"),
    "sqlite cursor": of_sqlite,
    "arrow stream": Capsule,
    "dict of lists": columns,
    "dict of arrays": lambda: {name: np.array(values) for name, values in columns().items()},
    "dict of series": lambda: {name: pandas.Series(values) for name, values in columns().items()},
    "path": lambda: TABLE,
    "paths": lambda: [str(TABLE)],
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_gives_the_same_draws(kind, wells):
    assert np.array_equal(dpm.sample(WELLS, KINDS[kind](), **SHORT)["beta"], wells)


@pytest.mark.parametrize("kind", ["pandas", "dict of lists", "dict of arrays", "duckdb cursor"])
def test_without_arrow_too(kind, wells, monkeypatch):
    data = KINDS[kind]()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    assert np.array_equal(dpm.sample(WELLS, data, **SHORT)["beta"], wells)
    with pytest.raises(dpm.InputError, match="needs pyarrow or polars"):
        dpm.sample(WELLS, Capsule(), **SHORT)


def test_streams_without_pyarrow(wells, monkeypatch):
    data = KINDS["duckdb relation"]()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert np.array_equal(dpm.sample(WELLS, data, **SHORT)["beta"], wells)


def test_missing_values_and_types_are_read_alike(monkeypatch):
    model = BERNOULLI.replace("y;", "y;\n  real<lower=0, upper=1> x;\n  factor(\"n\", \"s\") f;").replace("logit(a)", "logit(a * x + f)")
    y = [1, 0, None, 1] * 50
    x = [0.1, float("nan"), np.float32(0.1), 1]
    tables = [
        {"y": [None if v is None else bool(v) for v in y], "x": np.array(x * 50, dtype="float32"), "f": ["n", "s", "n", None] * 50},
        pandas.DataFrame({"y": pandas.array(y, dtype="Int8"), "x": np.array(x * 50, dtype="float32"), "f": pandas.Categorical(["n", "s", "n", None] * 50)}),
    ]
    fits = [dpm.sample(model, table, **SHORT)["a"] for table in tables]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    fits += [dpm.sample(model, table, **SHORT)["a"] for table in tables]
    assert all(np.array_equal(fit, fits[0]) for fit in fits)


def test_a_matrix_becomes_columns():
    model = BERNOULLI.replace("y;", "y;\n  vector<lower=-1, upper=1>[2] x;").replace("logit(a)", "logit(a * x[1] - a * x[2])")
    x = np.linspace(-1, 1, 200).reshape(100, 2)
    flat = {"y": [0, 1] * 50, "x.1": x[:, 0], "x.2": x[:, 1]}
    both = [dpm.sample(model, table, **SHORT)["a"] for table in (flat, {"y": [0, 1] * 50, "x": x})]
    assert np.array_equal(*both)


def test_curators_can_check_a_table():
    with pytest.warns(dpm.DpmWarning, match="NOT PRIVATE"):
        found = dpm.check(BERNOULLI, data={"y": [0, 7, 1]}, on_bad_rows="skip")
    assert found["data"]["columns"][0]["bad"]["count"] == 1


SECRET = "13.577531"


class Untold:
    """A value that no message may show."""

    def __repr__(self):
        return SECRET

    __str__ = __repr__


class Breaks:
    description = [("y",)]

    def fetchmany(self, n):
        raise ValueError(f"cannot read {SECRET}")


REFUSED = {
    "text for a number": ({"y": ["0", SECRET]}, "column `y`"),
    "out of bounds": ({"y": [0.0, float(SECRET)]}, "column `y`"),
    "two types": ({"y": [0, SECRET]}, "several types"),
    "objects": (pandas.DataFrame({"y": [Untold(), 1]}), "several types"),
    "objects of polars": (polars.DataFrame({"y": [Untold()]}, schema={"y": polars.Object}), "several types"),
    "a cursor that breaks": (Breaks(), "ValueError"),
    "other columns": ({"z": [float(SECRET)]}, "no column named `y`"),
    "different lengths": ({"y": [float(SECRET)], "z": []}, "differ in length"),
    "a series": (pandas.Series([float(SECRET)]), "found a Series of pandas"),
    "a series of polars": (polars.Series([float(SECRET)]), "found a Series of polars"),
    "no table": (Untold(), "found a Untold"),
    "no path": ("nosuch.csv", "cannot read"),
    "nothing": ({"y": []}, "no row|no record"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_show_no_value(name):
    data, expected = REFUSED[name]
    with pytest.raises(dpm.InputError, match=expected) as caught:
        dpm.sample(BERNOULLI, data, **SHORT)
    shown = "".join(traceback.format_exception(type(caught.value), caught.value, caught.value.__traceback__))
    assert SECRET not in shown
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_a_table_that_breaks_off_is_not_sampled():
    class Half:
        description = [("y",)]
        left = 3

        def fetchmany(self, n):
            self.left -= 1
            if not self.left:
                raise RuntimeError
            return [(1,)] * n

    with pytest.raises(dpm.InputError, match="RuntimeError"):
        dpm.sample(BERNOULLI, Half(), out="run", **SEEDED)
    assert not __import__("os").path.exists("run")


def test_no_row_is_in_the_arguments_or_on_a_disk(tmp_path, monkeypatch):
    import tempfile

    from dpm_bayes import _program

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen = []
    popen = _program.subprocess.Popen
    monkeypatch.setattr(_program.subprocess, "Popen", lambda argv, **rest: seen.append((argv, rest.get("env"))) or popen(argv, **rest))
    model = BERNOULLI.replace("y;", "y;\n  real<lower=0, upper=20> x;").replace("logit(a)", "logit(a * x)")
    fit = dpm.sample(model, {"y": [0, 1], "x": [float(SECRET)] * 2}, **SHORT)
    assert SECRET not in str(seen)
    assert all(SECRET not in p.read_text() for p in tmp_path.rglob("*") if p.is_file())
    assert fit.directory.is_relative_to(tmp_path)
