"""Runs are those of the command line, and their results are what the files say."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import BERNOULLI, CONSTANTS, SEEDED, TABLE, WELLS

import dpm_bayes as dpm

pytestmark = pytest.mark.filterwarnings("ignore::dpm_bayes.DpmWarning")

YES = {"y": [0, 1, 1, 1] * 500}
SHORT = {**SEEDED, "num_samples": 20}


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    out = tmp_path_factory.mktemp("wells") / "run"
    return dpm.sample(WELLS, TABLE, epsilon=1, delta=1e-6, out=out, progress=False)


def test_the_version_is_the_programs():
    said = subprocess.run([dpm.program(), "--version"], capture_output=True, text=True).stdout
    assert said.split() == ["dpm", dpm.__version__]


def test_another_version_is_refused(tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho dpm 9.9.9\n")
    other.chmod(0o755)
    monkeypatch.setattr("dpm_bayes._program._of_the_wheel", lambda: None)
    monkeypatch.setenv("DPM", str(other))
    with pytest.raises(dpm.DpmError, match="9.9.9.*is for dpm"):
        dpm.program()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"algorithm": "dp-hmc", "leapfrog_steps": 3, "num_samples": 20, "fresh_gradients": True},
        {"algorithm": "dp-penalty", "num_samples": 20, "clip_log_ratio": "derived", "chains": 2},
    ],
)
def test_draws_are_those_of_the_command_line(settings):
    ours = dpm.sample(WELLS, TABLE, **SEEDED, **settings)
    flags = []
    for name, value in {**SEEDED, **settings}.items():
        flag = "--" + name.replace("_", "-")
        flags += [flag] if value is True else [flag, str(value)]
    subprocess.run([dpm.program(), "sample", WELLS, TABLE, "--out", "run", "-q", *flags], check=True)
    for i in range(ours.config["chains"]):
        name = f"chain-{i + 1}.csv"
        assert (ours.directory / name).read_bytes() == open(f"run/{name}", "rb").read()


def test_all_samplers_are_there():
    nuts = dpm.sample(BERNOULLI, YES, algorithm="nuts", not_private=True, num_samples=50)
    assert nuts.draws["a"].shape == (4, 50)
    assert not nuts.privacy["private"]
    assert "NOT PRIVATE" in repr(nuts)


def test_draws_have_shapes(fit):
    assert {name: a.shape for name, a in fit.draws.items()} == {"alpha": (4, 500), "beta": (4, 500, 6)}
    lines = [x for x in (fit.directory / "chain-2.csv").read_text().splitlines() if not x.startswith("#")]
    columns, row = lines[0].split(","), lines[1 + 7].split(",")
    assert fit["beta"][1, 7, 2] == float(row[columns.index("beta.3")])
    assert fit.sample_stats["tree_depth"].shape == (4, 500)
    assert "lp" not in fit.sample_stats


def test_a_matrix_has_its_shape(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "privacy.json").write_text("{}")
    (run / "chain-1.csv").write_text("# c\nlp__,m.1.1,m.2.1,m.1.2,m.2.2\n# adapted\nnan,11,21,12,22\nnan,1,2,3,4\n")
    (run / "chain-2.csv").write_text("lp__,m.1.1,m.2.1,m.1.2,m.2.2\nnan,11,21,12,22\n")
    assert dpm.Fit(run)["m"].tolist() == [[[[11, 12], [21, 22]]]] * 2


def test_results(fit):
    assert fit.ok == (fit.decision != "do_not_use")
    assert fit.privacy["epsilon"] == 1
    told = json.loads(json.dumps(fit.privacy["verdicts"]))
    assert [v.text for v in fit.verdicts] == [v["sentence"] for v in told]
    assert {v.severity for v in fit.verdicts} <= {"good", "note", "warning", "problem"}
    assert all(v.code for v in fit.verdicts)
    assert fit.decision in fit.diagnose()["decision"]
    assert "draws" in fit.diagnose().text
    assert "4 chains of 500 draws, epsilon 1.0" in repr(fit)
    html = fit.report._repr_html_()
    assert html.startswith("<iframe") and "srcdoc=" in html and "<html" not in html
    assert fit.report.html.startswith("<!DOCTYPE html>") or fit.report.html.startswith("<!doctype html>")
    assert "<table" in fit._repr_html_()


def test_a_report_is_made_where_there_is_none():
    fit = dpm.sample(BERNOULLI, YES, no_report=True, num_samples=20, **SEEDED)
    assert not (fit.directory / "report.html").exists()
    assert "<html" in fit.report.html


def test_summary_is_a_frame_of_what_is_there(fit, monkeypatch):
    from importlib import util

    for library in ("pandas", "polars"):
        for other in ("pandas", "polars"):
            monkeypatch.delitem(sys.modules, other, raising=False)
        frame = __import__(library).DataFrame
        assert isinstance(fit.summary(), frame)
    monkeypatch.delitem(sys.modules, "polars")
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    table = fit.summary()
    assert isinstance(table, dpm.Table)
    assert table["parameter"][:2] == ["alpha", "beta[1]"]
    assert len(table) == 7 and "r_hat" in repr(table) and "<th>r_hat</th>" in table._repr_html_()


def test_frames_are_those_of_convert(fit, tmp_path):
    from pyarrow import parquet

    theirs = parquet.read_table(fit.convert("parquet", tmp_path / "draws.parquet"))
    names = fit.to_polars().columns
    assert names[:4] == ["chain", "draw", "alpha", "beta[1]"]
    for frame in (fit.to_polars(), fit.to_pandas(), fit.to_arrow()):
        for name in names:
            assert np.array_equal(np.asarray(frame[name]), theirs[name].to_numpy())
    assert fit.to_arrow().schema.metadata[b"privacy_statement"].decode() == fit.privacy["statement"]


def test_arviz(fit):
    data = fit.to_arviz()
    assert np.array_equal(data["posterior"]["beta"].values, fit["beta"])
    assert data["posterior"]["beta"].dims == ("chain", "draw", "beta_dim_0")
    assert data["sample_stats"]["diverging"].dtype == bool
    assert data["posterior"].attrs["privacy_statement"] == fit.privacy["statement"]
    import arviz

    assert len(arviz.summary(data)) == 7


def test_compare(fit, tmp_path):
    assert fit.compare(fit).parameters[0]["mean_error"] == 0
    assert dpm.compare(fit.directory, dpm.convert(fit, "csv", tmp_path / "x.csv"))["draws"] == 2000


def test_generate(fit):
    model = WELLS.read_text() + "generated quantities {\n  vector[2] twice = [alpha, 2 * alpha]';\n}\n"
    made = fit.generate(model, constants=dict(json.loads(WELLS.with_suffix(".constants.json").read_text())))
    assert np.array_equal(made["twice"][:, :, 1], 2 * fit["alpha"])


def test_constants_and_columns():
    given = dpm.sample(WELLS, TABLE, constants=CONSTANTS, **SHORT)
    assert json.loads((given.directory / "model.constants.json").read_text()) == CONSTANTS
    renamed = BERNOULLI.replace("y", "out")
    fit = dpm.sample(renamed, {"a, b": YES["y"]}, columns={"out": "a, b"}, **SHORT)
    assert np.array_equal(fit["a"], dpm.sample(BERNOULLI, YES, **SHORT)["a"])


def test_initial_values():
    hmc = {"algorithm": "hmc", "not_private": True, "num_samples": 10, "chains": 2}
    same = [dpm.sample(BERNOULLI, YES, init=init, **hmc)["a"] for init in ({"a": 1.0}, [{"a": np.float64(1)}] * 2)]
    assert np.array_equal(*same)
    with pytest.raises(dpm.InputError, match="expected finite numbers"):
        dpm.sample(BERNOULLI, YES, init={"a": float("nan")}, **hmc)


def test_a_directory_lasts_as_long_as_its_fit(tmp_path):
    fit = dpm.sample(BERNOULLI, YES, **SHORT)
    directory = fit.directory
    assert directory.is_dir()
    del fit
    assert not directory.parent.exists()
    kept = dpm.sample(BERNOULLI, YES, out=tmp_path / "run", **SHORT)
    del kept
    assert dpm.Fit(tmp_path / "run")["a"].shape == (4, 20)
    with pytest.raises(dpm.DpmError, match="give overwrite"):
        dpm.sample(BERNOULLI, YES, out=tmp_path / "run", **SHORT)
    dpm.sample(BERNOULLI, YES, out=tmp_path / "run", overwrite=True, **SHORT)


def test_what_is_said(capfd):
    with pytest.warns(dpm.DpmWarning, match="NOT PRIVATE"):
        dpm.sample(BERNOULLI, YES, progress=False, **SHORT)
    assert capfd.readouterr().err == ""
    dpm.sample(BERNOULLI, YES, progress=True, **SHORT)
    assert "dp-laplace: 4 chains" in capfd.readouterr().err


def interrupt_when(path):
    def press():
        while not path.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()


LONG = {"epsilon": 1, "delta": 1e-6, "algorithm": "dp-hmc", "num_samples": 2000, "leapfrog_steps": 20}


def test_ctrl_c_leaves_a_run_that_can_be_resumed(tmp_path):
    ledger = dpm.Ledger.create("a.ledger", epsilon=2, delta=1e-6)
    run = tmp_path / "run"
    interrupt_when(run / "unfinished" / "chain-1.even")
    with pytest.raises(KeyboardInterrupt) as caught:
        dpm.sample(BERNOULLI, YES, ledger=ledger, out=run, **LONG)
    assert caught.value.directory == run
    spent = ledger.spent
    done = dpm.resume(run, YES)
    assert done["a"].shape == (4, 2000)
    assert ledger.spent == spent
    assert "1 run" in ledger.verify(against=[done])


def test_a_killed_program_leaves_its_directory(tmp_path, monkeypatch):
    from dpm_bayes import _program

    children = []
    popen = _program.subprocess.Popen
    monkeypatch.setattr(_program.subprocess, "Popen", lambda *a, **k: children.append(popen(*a, **k)) or children[-1])

    def kill():
        while not (tmp_path / "run" / "unfinished" / "chain-1.even").exists():
            time.sleep(0.01)
        children[-1].kill()

    threading.Thread(target=kill, daemon=True).start()
    with pytest.raises(dpm.DpmError, match="(?s)signal 9.*dpm.resume") as caught:
        dpm.sample(BERNOULLI, YES, out=tmp_path / "run", **LONG)
    assert caught.value.directory == tmp_path / "run"


def test_ctrl_c_ends_the_program_before_it_has_its_data():
    class Slow:
        description = [("y",)]

        def fetchmany(self, n):
            os.kill(os.getpid(), signal.SIGINT)
            return [(1,)]

    with pytest.raises(KeyboardInterrupt):
        dpm.sample(BERNOULLI, Slow(), epsilon=1)


def test_import_is_lazy():
    code = "import sys, dpm_bayes; print([m for m in ('numpy', 'pandas', 'polars', 'pyarrow') if m in sys.modules])"
    path = str(Path(dpm.__file__).parents[1])
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": path}).stdout
    assert out.strip() == "[]"
