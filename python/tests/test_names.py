"""docs/names.md lists what the program has, and names what is there."""

import inspect
import re
import subprocess
from functools import reduce
from pathlib import Path

import pytest
from conftest import SEEDED, TABLE, WELLS

import dpm_bayes as dpm

ROOT = Path(__file__).parents[2]


def table(title):
    section = (ROOT / "docs/names.md").read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def names(cell):
    return re.findall(r"`([^`]+)`", cell)


def in_files(folder, pattern):
    return "\n".join(path.read_text() for path in (ROOT / folder).rglob(pattern))


def completions():
    text = subprocess.run([dpm.program(), "completions", "fish"], capture_output=True, text=True).stdout
    return [line for line in text.splitlines() if line.startswith("complete ")]


def test_all_commands_are_listed():
    listed = {names(row[0])[0] for row in table("Commands")}
    top = {m[1] for line in completions() if (m := re.search(r'needs_command" .*-a "([\w-]+)"', line))}
    assert {name.split()[1] for name in listed} == top - {"help"}
    assert {"create", "show", "verify", "adopt"} == {n.split()[2] for n in listed if n.startswith("dpm ledger")}


def test_all_settings_are_listed():
    rows = table("Settings of `dpm sample`")
    flags = {m[1] for line in completions() if (m := re.search(r'using_subcommand sample" .*-l ([\w-]+)', line))}
    listed = {names(row[0])[0][2:]: names(row[2])[0] for row in rows if row[0].startswith("`--")}
    assert set(listed) == flags - {"help", "color"}
    in_r = {names(row[0])[0][2:]: names(row[3])[0] for row in rows if row[0].startswith("`--")}
    for column in (listed, in_r):
        del column["quiet"], column["resume"]
        assert column == {flag: flag.replace("-", "_") for flag in column}
    # Those that are spelt out in Python are the program's.
    known = set(inspect.signature(dpm.sample).parameters) - {"flags", "progress"}
    assert known <= {names(row[2])[0] for row in rows}
    # And in R.
    signature = re.search(r"dpm_sample <- function\((.*?)\.\.\.\)", in_files("r/R", "*.R"), re.DOTALL)[1]
    known = set(re.findall(r"([a-z_]+)(?: =|,)", signature)) - {"progress"}
    assert "model" in known and known <= {names(row[3])[0] for row in rows}


@pytest.mark.filterwarnings("ignore::dpm_bayes.DpmWarning")
def test_all_files_are_listed():
    guess = {"columns": {"dist": {"mean": 50, "sd": 40}}}
    fit = dpm.sample(WELLS, TABLE, num_samples=20, chains=1, metadata=guess, **SEEDED)
    assert {p.name for p in fit.directory.iterdir()} == {n for row in table("Files of a run") for n in names(row[0])}


def test_what_is_named_is_there():
    source = in_files("src", "*.rs")
    exported = re.findall(r"export\((\w+)\)", (ROOT / "r/NAMESPACE").read_text())
    of_r = in_files("r/R", "*.R")
    for title in ("Commands", "Settings of `dpm sample`", "Files of a run", "Exit codes"):
        for _, rust, python, r in table(title):
            for name in names(rust):
                assert all(re.search(rf"\b{part}\b", source) for part in name.split("::")), name
            if title.startswith("Settings"):
                continue
            for name in names(python):
                if name not in ("Fit.directory",):  # set by __init__
                    reduce(getattr, name.split("."), dpm)
            for name in names(r):
                if name.startswith("fit$"):
                    assert f"{name} <- " in of_r, name
                elif title == "Exit codes":
                    assert f'"{name}"' in of_r, name
                else:
                    assert name in exported, name
    # No function is left out but those that only R has.
    listed = {name for title in ("Commands", "Files of a run") for row in table(title) for name in names(row[3])}
    assert set(exported) - listed == {"dpm_ledger", "dpm_program", "dpm_version"}
