"""How far a run is: bars, functions, and what neither shows."""

import io
import re
import sys

import numpy as np
import pytest
from conftest import BERNOULLI, SEEDED

import dpm_bayes as dpm

pytestmark = pytest.mark.filterwarnings("ignore::dpm_bayes.DpmWarning")

YES = {"y": [0, 1, 1, 1] * 50}
SHORT = {**SEEDED, "chains": 2, "num_warmup": 10, "num_samples": 20}


def steps_of(rows, **settings):
    steps = []
    dpm.sample(BERNOULLI, {"y": YES["y"] * rows}, progress=steps.append, **{**SHORT, **settings})
    return steps


def test_a_function_is_told_of_each_stage():
    steps = steps_of(1)
    assert isinstance(steps[0], dpm.Progress)
    learning = [step for step in steps if step.stage == "learning"]
    assert [step.done for step in learning] == list(range(len(learning)))
    assert learning[-1].done == learning[-1].total and learning[0].unit == "rounds"
    assert steps[len(learning) :] == [("sampling", i, 60, "iterations") for i in range(1, 61)]


# If it failed: a log of what was told would tell the number of records, by how far apart the lines are.
def test_what_is_told_does_not_depend_on_the_table():
    settings = {"algorithm": "dp-hmc", "leapfrog_steps": 2, "num_samples": 91}
    few, many = steps_of(1, **settings), steps_of(20, **settings)
    assert few == many and [step.done for step in few] == [1, *range(3, 202, 3), 202]


def test_tables_of_sbc_are_told():
    steps = []
    dpm.sbc(BERNOULLI, rows=50, algorithm="nuts", not_private=True, tables=3, num_samples=20, progress=steps.append)
    assert steps == [("tables", i, 3, "tables") for i in (1, 2, 3)]


def test_settings_of_tune_are_told(capfd):
    few = {"rows": 50, "epsilon": 1, "delta": 1e-3, "tries": 2, "points": 1, "records": 50}
    steps = []
    dpm.tune(BERNOULLI, progress=steps.append, **few)
    assert steps == [("settings", i, 2, "settings") for i in (1, 2)]
    assert not capfd.readouterr().err
    dpm.tune(BERNOULLI, progress=True, **few)
    said = capfd.readouterr().err
    assert "2/2 settings" in said and "stage" not in said


def test_an_exception_stops_the_run_which_can_be_resumed(tmp_path):
    def stops(step):
        if step.done >= 30:
            raise LookupError(step.done)

    long = {**SEEDED, "algorithm": "dp-hmc", "num_samples": 2000, "num_warmup": 10, "chains": 1}
    with pytest.raises(LookupError):
        dpm.sample(BERNOULLI, YES, progress=stops, out=tmp_path / "run", **long)
    assert dpm.Fit(tmp_path / "run").privacy["unfinished"]
    assert dpm.resume(tmp_path / "run", YES)["a"].shape == (1, 2000)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_bar_and_messages(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    dpm.sample(BERNOULLI, YES, **SHORT)
    said = sys.stderr.getvalue()
    assert "learning:" in said and "sampling:" in said and "stage" not in said
    assert "dp-laplace: 2 chains" in said


def test_what_lasts_shows_no_times(capfd):
    dpm.sample(BERNOULLI, YES, progress=True, **SHORT)
    said = capfd.readouterr().err
    bars = [line for line in re.split("[\r\n]", said) if line.startswith(("learning:", "sampling:"))]
    # All of them, whenever they came.
    assert {f"{i}/60 iterations" for i in range(61)} <= {line.rsplit("| ")[-1] for line in bars}
    assert all(re.fullmatch(r"\w+: +\d+%\|.*\| \d+/\d+ (rounds|iterations)", line) for line in bars), bars


class Shell:
    kernel = None


@pytest.mark.parametrize("widgets", [True, False])
def test_a_notebook_gets_a_bar_alone(capfd, monkeypatch, widgets):
    from dpm_bayes import _progress

    import IPython

    monkeypatch.setattr(IPython, "get_ipython", Shell)
    monkeypatch.setattr(_progress, "find_spec", lambda name: widgets or None)
    dpm.sample(BERNOULLI, YES, **SHORT)
    said = capfd.readouterr().err
    assert ("sampling:" in said) == widgets and "dp-laplace" not in said


def test_without_tqdm_there_are_lines(capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    dpm.sample(BERNOULLI, YES, progress=True, **SHORT)
    said = capfd.readouterr().err
    assert "dp-laplace: 2 chains" in said and "sampling:" not in said and "stage" not in said


def test_draws_do_not_depend_on_what_is_shown():
    shown = dpm.sample(BERNOULLI, YES, progress=print, **SHORT)["a"]
    assert np.array_equal(shown, dpm.sample(BERNOULLI, YES, progress=False, **SHORT)["a"])
