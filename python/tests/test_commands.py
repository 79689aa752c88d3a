"""The other commands, and how each refusal looks."""

import json
import math
import re

import polars
import pytest
from conftest import BERNOULLI, SEEDED, TABLE, WELLS

import dpm_bayes as dpm

WRONG = """record { real<lower=0, upper=1> y; }
parameters { real a; }
model {
  a ~ normal(y, 1);
}
"""


def test_a_wrong_model_is_shown_with_carets():
    for call in (dpm.check, lambda m: dpm.sample(m, {}, epsilon=1), lambda m: dpm.plan(m, rows=9, epsilon=1)):
        with pytest.raises(dpm.ModelError, match=r"error\[E0201\]") as caught:
            call(WRONG)
        assert "4 |   a ~ normal(y, 1);\n  |   -          ^ stage record" in str(caught.value)
        assert "--> model.dpm:4:14" in str(caught.value)
    found = caught.value.diagnostics[0]
    assert (found.code, found.severity, found.line, found.column) == ("E0201", "error", 4, 14)
    assert "private" in found.message and found.notes[0]["message"] == "this is a parameter"
    assert caught.value._repr_html_().startswith("<pre>error[E0201]")


def test_check_and_info():
    found = dpm.check(WELLS)
    assert [d.code for d in found.diagnostics] == ["W0111", "W0111"]
    assert found.ok and "sensitivity" in found.text and "<pre>" in found._repr_html_()
    assert [c["name"] for c in dpm.info(WELLS)["record"]] == ["switched", "dist", "arsenic", "educ"]
    with pytest.raises(AttributeError, match="only model"):
        found.nothing


def test_models():
    text = dpm.Model(BERNOULLI, "coin")
    assert text.path.name == "coin.dpm" and text.source == BERNOULLI
    assert text.format() == BERNOULLI
    assert repr(text) == "dpm.Model('coin')"
    assert dpm.Model.read(WELLS).source == WELLS.read_text()
    with pytest.raises(dpm.InputError, match="slashes"):
        dpm.Model(BERNOULLI, "../coin")
    with pytest.raises(dpm.InputError, match="nosuch.dpm"):
        dpm.check("nosuch.dpm")


def test_log_prob():
    points = [{"params": {"a": 0.0}}]
    with pytest.raises(dpm.InputError, match="not_private"):
        dpm.Model(BERNOULLI).log_prob({"y": [1]}, points)
    with pytest.warns(dpm.DpmWarning):
        found = dpm.Model(BERNOULLI).log_prob({"y": [1]}, points, not_private=True)
    assert "gradient" in json.dumps(found)


def test_plan_and_tune():
    plan = dpm.plan(WELLS, rows=3020, epsilon=1, delta=1e-6)
    assert plan.epsilon <= 1 and plan["events"]
    assert "epsilon 1.000000 at delta 1e-6" in repr(plan)
    found = dpm.tune(WELLS, rows=3020, epsilon=1, delta=1e-6, tries=2, points=1, records=50)
    dpm.plan(WELLS, rows=3020, epsilon=1, delta=1e-6, **found.settings)


def test_accounts():
    event = "gaussian:sensitivity=1,sigma=20,count=100"
    assert dpm.account(event, relation="substitute", delta=1e-6)["epsilon"] == pytest.approx(2.254, abs=1e-3)
    assert len(dpm.account([event, event], relation="substitute", delta=[1e-5, 1e-6])) == 2
    calibrated = dpm.calibrate("gaussian:sensitivity=1,count=100", relation="substitute", epsilon=1, delta=1e-6)
    assert calibrated["sigma"] == pytest.approx(42.25, abs=0.01)


@pytest.mark.filterwarnings("ignore::dpm_bayes.DpmWarning")
def test_a_ledger_adds_up_and_refuses():
    ledger = dpm.Ledger.create("a.ledger", epsilon=1.2, delta=1e-6)
    fit = dpm.sample(WELLS, TABLE, epsilon=1, delta=1e-6, ledger=ledger, num_samples=20)
    assert ledger.spent == pytest.approx(1, abs=1e-6) and ledger.remaining == pytest.approx(0.2, abs=1e-6)
    assert ledger.show()["history"][0]["outcome"] == "completed" and "completed" in repr(ledger.show())
    for refused in (
        lambda: dpm.sample(WELLS, TABLE, epsilon=1, delta=1e-6, ledger="a.ledger"),
        lambda: dpm.plan(WELLS, rows=3020, epsilon=1, delta=1e-6, ledger=ledger),
    ):
        with pytest.raises(dpm.BudgetExceeded, match="the budget refuses this run") as caught:
            refused()
        assert caught.value.spent == ledger.spent and caught.value.remaining == ledger.remaining
        assert 0 < caught.value.room < 1
        assert 1 > caught.value.requested > caught.value.remaining
    assert "holds" in ledger.verify(against=fit)
    with pytest.raises(dpm.DpmError, match="exists"):
        dpm.Ledger.create("a.ledger", epsilon=1, delta=1e-6)
    with open("a.ledger", "a") as file:
        file.write('{"forged":1}\n')
    with pytest.raises(dpm.DpmError):
        ledger.verify()


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, "Give epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": 1, "bogus": 3}, "'bogus' found"),
        ({"epsilon": 1, "algorithm": "dp-nothing"}, "dp-nothing"),
        ({"epsilon": 1, "algorithm": "nuts"}, "not_private"),
        ({"epsilon": 1, "ledger": "nosuch.ledger"}, "nosuch.ledger"),
        ({"epsilon": 1, "constants": {"mean_dist": 1}}, "mean_arsenic"),
        ({"epsilon": 1, "unit": "household"}, "household"),
    ],
)
def test_wrong_settings_are_refused(settings, expected):
    with pytest.raises(dpm.InputError, match=expected) as caught:
        dpm.sample(WELLS, TABLE, **settings)
    assert caught.value.code == 2


def test_magic():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "dpm_bayes")
    shell.run_cell_magic("dpm", "coin", BERNOULLI)
    assert shell.user_ns["coin"].name == "coin"
    with pytest.raises(dpm.ModelError, match="--> worse.dpm:4:14"):
        shell.run_cell_magic("dpm", "worse", WRONG)
    assert "worse" not in shell.user_ns
    with pytest.raises(dpm.InputError, match="expects the name"):
        shell.run_cell_magic("dpm", "", BERNOULLI)


@pytest.mark.filterwarnings("ignore::dpm_bayes.DpmWarning")
def test_runs_are_judged_by_records_that_were_held_out():
    fits = [dpm.sample(WELLS, TABLE, hold_out=0.3, num_samples=50, chains=2, **SEEDED) for _ in range(2)]
    rows = polars.read_csv(TABLE)
    score = {"epsilon": 2, "delta": 1e-6, "insecure_noise_seed": 1}
    found = dpm.score(fits[0], TABLE, against=[fits[1]], **score)
    assert found["differences"][0]["log_predictive_density"]["mean"] == pytest.approx(0, abs=0.01)
    low, high = found["log_predictive_density"]["interval_90"]
    assert -0.8 < low < high < -0.5
    assert found["hold_out"] == 0.3
    # A table through a pipe is the same table.
    alone = dpm.score(fits[0], TABLE, **score)
    assert dpm.score(fits[0], rows, **score)["brier_score"] == alone["brier_score"]
    checks = dpm.score(fits[0], rows, statistic=["switched == 1", "switched * (arsenic > 2)"], **score)["statistics"]
    assert [check["statistic"] for check in checks] == ["switched == 1", "switched * (arsenic > 2)"]
    assert 0.4 < checks[0]["observed"] < 0.75
    with pytest.raises(dpm.InputError, match="drown"):
        dpm.score(fits[0], TABLE, epsilon=0.001, delta=1e-6)
    with pytest.raises(dpm.InputError, match="held out none of its table"):
        dpm.score(dpm.sample(WELLS, TABLE, num_samples=20, chains=1, **SEEDED), TABLE, epsilon=1)


def test_a_model_comes_from_a_formula():
    book = {"columns": {"y": {"type": "boolean"}, "x": {"type": "float", "lower": -2, "upper": 2}}}
    model = dpm.new("y ~ x", "bernoulli", book, name="line")
    assert model.name == "line" and "b_x" in model.source and not model.check().diagnostics
    with pytest.raises(dpm.InputError, match="z"):
        dpm.new("y ~ x + z", "bernoulli", book)


@pytest.mark.filterwarnings("ignore::dpm_bayes.DpmWarning")
def test_tables_are_made_up_and_runs_on_them_judged(tmp_path):
    found = dpm.simulate(BERNOULLI, rows=300, out=tmp_path / "t.csv", parameters={"a": 1.0}, seed=2)
    y = polars.read_csv(tmp_path / "t.csv")["y"]
    assert len(y) == 300 and found.outcomes and 0.6 < y.mean() < 0.85
    calibrated = dpm.sbc(BERNOULLI, rows=100, tables=6, algorithm="nuts", not_private=True, no_reference=True)
    assert calibrated["tables"] == 6 or len(calibrated["tables"]) == 6
    fit = dpm.sample(BERNOULLI, tmp_path / "t.csv", num_samples=50, chains=1, **SEEDED)
    about = dpm.synth(fit, rows=40, out=tmp_path / "s.csv", tables=2)
    assert len(polars.read_csv(tmp_path / "s-2.csv")) == 40 and about
    (tmp_path / "e.csv").write_text("estimate,variance\n1.0,0.5\n1.2,0.4\n0.9,0.6\n")
    pooled = dpm.pool(tmp_path / "e.csv", rule="partial")
    assert "3.1" not in pooled.text and "1.033" in pooled.text


@pytest.mark.filterwarnings("ignore::dpm_bayes.DpmWarning")
def test_a_spent_ledger_refuses_what_no_epsilon_would_cover():
    ledger = dpm.Ledger.create("a.ledger", epsilon=1, delta=1e-6)
    dpm.sample(BERNOULLI, {"y": [0, 1] * 50}, epsilon=1, delta=1e-6, ledger=ledger, num_samples=20)
    with pytest.raises(dpm.BudgetExceeded) as caught:
        dpm.sample(BERNOULLI, {"y": [0, 1] * 50}, epsilon=1, delta=1e-6, ledger=ledger)
    assert caught.value.requested == math.inf and caught.value.spent == pytest.approx(1)


@pytest.mark.parametrize(
    "table, settings, said",
    [
        ({"z": [1]}, {"epsilon": 1}, r'the table has no column named `y`.* give `columns=\{"y": "NAME"\}`'),
        ({"y": [2]}, {"epsilon": 1}, r'the table, row 1, .* use `on_bad_rows="skip"`'),
        ({"y": [0]}, {}, r'`epsilon=1, delta=1e-6`; or `algorithm="hmc", not_private=True` for'),
        ({"y": [0]}, {"epsilon": 1, "num_sample": 9}, r"(?s)'num_sample' found.*'num_samples'$"),
        ({"y": [0]}, {"epsilon": "much"}, r"for 'epsilon': `much` is not a number"),
        ({"y": [0]}, {"epsilon": 1, "leapfrog_steps": 0}, r"leapfrog_steps"),
    ],
)
def test_refusals_speak_of_keywords_and_the_table(table, settings, said):
    with pytest.raises(dpm.InputError, match=said) as caught:
        dpm.sample(BERNOULLI, table, **settings)
    assert not set(re.findall("--[a-z]", str(caught.value)))


def test_commands_in_messages_stay_as_they_are():
    from dpm_bayes._program import _in_keywords

    text = "go on with `dpm sample --resume a--b`, see /x/--y.csv, and standard input"
    assert _in_keywords(text) == text.replace("standard input", "the table")
