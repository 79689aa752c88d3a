"""Checks that a run directory is read alike by arviz, cmdstanpy and a plain parse.

    pip install -r requirements.txt
    python check_readers.py [--dpm PROGRAM] RUN [RUN ...]

Opens RUN/chain-*.csv with arviz's from_cmdstan and cmdstanpy's from_csv; compares names,
shapes, every draw and the means (1e-12), warm-up included where it was saved, and with
RUN/summary.csv (1e-8) if there is one. With the program, what `dpm convert` makes of the run is
opened too, Zarr by xarray and arviz, Parquet by pyarrow, pandas and polars, CSV by pandas:
every draw is the same, and the means are those of `dpm summary` (1e-8). Exits with 1 and says
what differs on any mismatch.
"""
import csv
import glob
import io
import json
import logging
import math
import os
import re
import subprocess
import sys
import tempfile
import warnings

import numpy as np

warnings.filterwarnings("ignore")
import arviz as az  # noqa: E402
import cmdstanpy  # noqa: E402
import pandas as pd  # noqa: E402
import polars as pl  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import xarray as xr  # noqa: E402

# What arviz calls the sampler's columns.
STATISTICS = {"accept_stat": "acceptance_rate", "stepsize": "step_size", "n_leapfrog": "n_steps",
              "treedepth": "tree_depth", "divergent": "diverging"}


class Mismatch(Exception):
    pass


def expect(holds, message):
    if not holds:
        raise Mismatch(message)


def plain_parse(path):
    """(keys, columns, warm-up rows, sampling rows), as the format says and no more."""
    keys, columns, rows = {}, None, []
    with open(path, encoding="utf-8") as f:
        for line in f:
            line = line.rstrip("\n")
            if line.startswith("#"):
                found = re.fullmatch(r"#\s*(\S+) = (\S+)", line)
                if found:
                    keys[found[1]] = found[2]
            elif columns is None:
                columns = line.split(",")
            elif line:
                rows.append([float(v) for v in line.split(",")])
    for key in ("model", "method", "num_samples", "num_warmup", "thin", "save_warmup", "algorithm", "id"):
        expect(key in keys, f"{path}: no '# {key} = ..' line")
    expect(columns and columns[0] == "lp__", f"{path}: the first column is not lp__")
    thin = int(keys["thin"])
    saved = -(-int(keys["num_warmup"]) // thin) if keys["save_warmup"] == "1" else 0
    sampled = -(-int(keys["num_samples"]) // thin)
    expect(len(rows) == saved + sampled, f"{path}: {len(rows)} rows, expected {saved} + {sampled}")
    rows = np.array(rows, dtype=float).reshape(len(rows), len(columns))
    expect(np.isnan(rows[:, 0]).all(), f"{path}: lp__ must be NaN: the log density is not released")
    return keys, columns, rows[:saved], rows[saved:]


def bracket(name):
    variable, *indices = name.split(".")
    return f"{variable}[{','.join(indices)}]" if indices else variable


def same(a, b, tolerance, what):
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    expect(a.shape == b.shape, f"{what}: shape {a.shape} against {b.shape}")
    scale = np.maximum(1.0, np.maximum(np.abs(a), np.abs(b)))
    with np.errstate(invalid="ignore"):
        close = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= tolerance * scale)
    expect(close.all(), f"{what}: {a[~close].ravel()[:3]} against {b[~close].ravel()[:3]}")


def check_arviz(paths, columns, warmup, draws):
    data = az.from_cmdstan(paths, save_warmup=True)
    groups = [("posterior", "sample_stats", draws)]
    if warmup.shape[1]:
        groups.append(("warmup_posterior", "warmup_sample_stats", warmup))
    else:
        expect("warmup_posterior" not in data.groups(), "arviz: finds warm-up draws where none were saved")
    for group, stats, expected in groups:
        expect(group in data.groups(), f"arviz: no group {group}")
        variables = {c.split(".")[0] for c in columns if not c.endswith("__")}
        expect(set(data[group].data_vars) == variables, f"arviz: variables {sorted(data[group].data_vars)} in {group}, expected {sorted(variables)}")
        sizes = (data[group].sizes["chain"], data[group].sizes["draw"])
        expect(sizes == expected.shape[:2], f"arviz: {sizes} chains x draws in {group}, expected {expected.shape[:2]}")
        for column, name in enumerate(columns):
            if name.endswith("__"):
                values = data[stats][STATISTICS.get(name[:-2], name[:-2])].values
            else:
                variable, *indices = name.split(".")
                values = data[group][variable].values[(..., *(int(i) - 1 for i in indices))]
            same(values, expected[:, :, column], 0.0, f"arviz: draws of {name} in {group}")
    return data


def check_cmdstanpy(paths, columns, warmup, draws):
    logging.getLogger("cmdstanpy").setLevel(logging.ERROR)
    fit = cmdstanpy.from_csv(paths)
    expect(fit is not None, "cmdstanpy: takes the files for none of a sampler")
    expect(fit.chains == len(paths), f"cmdstanpy: {fit.chains} chains, expected {len(paths)}")
    expect(list(fit.column_names) == [bracket(c) for c in columns], f"cmdstanpy: columns {fit.column_names}")
    same(fit.draws(), draws.swapaxes(0, 1), 0.0, "cmdstanpy: draws")
    whole = np.concatenate([warmup, draws], axis=1)
    same(fit.draws(inc_warmup=True), whole.swapaxes(0, 1), 0.0, "cmdstanpy: draws with warm-up")
    for variable in {c.split(".")[0] for c in columns if not c.endswith("__")}:
        dims = max(tuple(int(i) for i in c.split(".")[1:]) for c in columns if c.split(".")[0] == variable)
        shape = fit.stan_variable(variable).shape
        expect(shape == (draws.shape[0] * draws.shape[1], *dims), f"cmdstanpy: {variable} has shape {shape}, dimensions {dims}")
    return fit


def check_means(data, fit, columns, draws):
    frame = fit.draws_pd()
    means = {}
    for column, name in enumerate(columns):
        if name.endswith("__"):
            continue
        variable, *indices = name.split(".")
        values = data.posterior[variable].values[(..., *(int(i) - 1 for i in indices))]
        plain = math.fsum(draws[:, :, column].ravel()) / draws[:, :, column].size
        same(values.mean(), plain, 1e-12, f"mean of {name}: arviz against a plain parse")
        same(frame[bracket(name)].to_numpy().mean(), plain, 1e-12, f"mean of {name}: cmdstanpy against a plain parse")
        means[bracket(name)] = plain
    return means


def check_summary(text, means, what):
    rows = {row["parameter"]: row for row in csv.DictReader(io.StringIO(text))}
    expect(list(rows) == list(means), f"{what}: parameters {list(rows)[:5]}.., expected {list(means)[:5]}..")
    for name, mean in means.items():
        same(float(rows[name]["mean"]), mean, 1e-8, f"{what}: mean of {name}")


def read(path):
    with open(path, newline="", encoding="utf-8") as f:
        return f.read()


def check_zarr(path, columns, draws, report):
    """The same by xarray as a tree and by arviz; no variable beside those expected."""
    tree = xr.open_datatree(path, engine="zarr")
    expect(set(tree.children) == {"posterior", "sample_stats"}, f"{path}: groups {list(tree.children)}")
    data = az.InferenceData.from_datatree(tree)
    parameters = [c for c in columns if not c.endswith("__")]
    expect(set(data.posterior.data_vars) == {c.split(".")[0] for c in parameters}, f"{path}: variables {list(data.posterior.data_vars)}")
    statistics = {STATISTICS.get(c[:-2], c[:-2]) for c in columns if c.endswith("__")} - {"lp"}
    expect(set(data.sample_stats.data_vars) == statistics, f"{path}: statistics {list(data.sample_stats.data_vars)}")
    for group in (data.posterior, data.sample_stats):
        for dimension, size in zip(("chain", "draw"), draws.shape):
            same(group[dimension].values, np.arange(size), 0.0, f"{path}: {dimension}")
    for column, name in enumerate(columns):
        if name == "lp__":
            continue
        variable, *indices = name.split(".")
        if name.endswith("__"):
            values = data.sample_stats[STATISTICS.get(name[:-2], name[:-2])].values
        else:
            values = data.posterior[variable].values[(..., *(int(i) - 1 for i in indices))]
            dims = ("chain", "draw", *(f"{variable}_dim_{k}" for k in range(len(indices))))
            expect(data.posterior[variable].dims == dims, f"{path}: dimensions {data.posterior[variable].dims} of {variable}")
        same(values, draws[:, :, column], 0.0, f"{path}: draws of {name}")
    for attributes in (tree.attrs, data.posterior.attrs):
        expect(attributes["privacy_statement"] == report["statement"], f"{path}: statement {attributes['privacy_statement']}")
        expect(json.loads(attributes["privacy_report"]) == report, f"{path}: another report")
    return {bracket(c): data.posterior[c.split(".")[0]].values[(..., *(int(i) - 1 for i in c.split(".")[1:]))].mean() for c in parameters}


def check_frame(frame, columns, draws, what):
    parameters = [(bracket(c), i) for i, c in enumerate(columns) if not c.endswith("__")]
    names = ["chain", "draw", *(name for name, _ in parameters)]
    expect(list(frame.columns)[: len(names)] == names, f"{what}: columns {list(frame.columns)}")
    chains, length = draws.shape[:2]
    same(frame["chain"], np.repeat(np.arange(chains), length), 0.0, f"{what}: chain")
    same(frame["draw"], np.tile(np.arange(length), chains), 0.0, f"{what}: draw")
    for name, column in parameters:
        same(frame[name], draws[:, :, column].ravel(), 0.0, f"{what}: draws of {name}")
    return {name: np.asarray(frame[name]).mean() for name, _ in parameters}


def check_conversions(dpm, run, columns, draws):
    with open(os.path.join(run, "privacy.json"), encoding="utf-8") as f:
        report = json.load(f)
    summary = subprocess.run([dpm, "summary", run, "--format", "csv"], check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        place = {kind: os.path.join(folder, f"draws.{kind}") for kind in ("zarr", "parquet", "csv")}
        for kind, path in place.items():
            subprocess.run([dpm, "convert", run, "--to", kind, "-o", path], check=True, capture_output=True)
        expect(sorted(os.listdir(folder)) == sorted(os.path.basename(p) for p in place.values()), f"{run}: conversions leave {os.listdir(folder)}")
        means = {"zarr": check_zarr(place["zarr"], columns, draws, report)}
        metadata = pq.read_schema(place["parquet"]).metadata
        expect(metadata[b"privacy_statement"].decode() == report["statement"], "parquet: another statement")
        expect(json.loads(metadata[b"privacy_report"]) == report, "parquet: another report")
        for reader, frame in (
            ("pyarrow", pq.read_table(place["parquet"]).to_pandas()),
            ("pandas", pd.read_parquet(place["parquet"])),
            ("polars", pl.read_parquet(place["parquet"])),
            ("csv", pd.read_csv(place["csv"])),
        ):
            means[reader] = check_frame(frame, columns, draws, reader)
        for reader, found in means.items():
            check_summary(summary, found, f"dpm summary against {reader}")


def check_run(run, dpm):
    number = lambda p: int(re.search(r"chain-(\d+)\.csv$", p)[1])  # noqa: E731
    paths = [p for p in glob.glob(os.path.join(glob.escape(run), "chain-*.csv")) if re.search(r"chain-\d+\.csv$", p)]
    paths.sort(key=number)
    expect(paths, f"{run}: no chain-1.csv")
    expect([number(p) for p in paths] == list(range(1, len(paths) + 1)), f"{run}: chains are not numbered from 1 without gaps")
    chains = [plain_parse(p) for p in paths]
    for path, (keys, columns, _, _) in zip(paths, chains):
        expect(columns == chains[0][1], f"{path}: columns differ from those of chain 1")
        expect(int(keys["id"]) == number(path), f"{path}: id is {keys['id']}")
    columns = chains[0][1]
    warmup = np.stack([c[2] for c in chains])
    draws = np.stack([c[3] for c in chains])
    data = check_arviz(paths, columns, warmup, draws)
    for key, value in chains[0][0].items():
        if key.startswith(("privacy_", "dpm_")):
            expect(key in data.posterior.attrs, f"arviz: loses the key {key}")
    fit = check_cmdstanpy(paths, columns, warmup, draws)
    means = check_means(data, fit, columns, draws)
    summary = os.path.join(run, "summary.csv")
    has_summary = os.path.exists(summary)
    if has_summary:
        check_summary(read(summary), means, summary)
    if dpm:
        check_conversions(dpm, run, columns, draws)
    print(f"{run}: {draws.shape[0]} chains x {draws.shape[1]} draws (+ {warmup.shape[1]} warm-up) x {len(means)} "
          f"parameters read alike by arviz {az.__version__} and cmdstanpy {cmdstanpy.__version__}"
          + (", summary.csv agrees" if has_summary else ", no summary.csv")
          + (f"; converted, by xarray {xr.__version__}, pyarrow {pq.core.pa.__version__}, pandas {pd.__version__} and polars {pl.__version__}" if dpm else ""))


def main(runs):
    dpm = None
    if runs[:1] == ["--dpm"]:
        dpm, runs = os.path.abspath(runs[1]) if runs[1:] else None, runs[2:]
    if not runs:
        print(__doc__, file=sys.stderr)
        return 2
    failed = 0
    for run in runs:
        try:
            check_run(run, dpm)
        except Mismatch as mismatch:
            print(f"{run}: {mismatch}", file=sys.stderr)
            failed = 1
        except Exception as error:  # a reader that does not take the file at all
            cause = f" ({error.__cause__})" if error.__cause__ else ""
            print(f"{run}: a reader failed: {type(error).__name__}: {error}{cause}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
