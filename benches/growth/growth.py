"""How time and memory of a whole run grow with records and parameters.

    python3 -m venv venv && venv/bin/pip install -r benches/growth/requirements.txt
    venv/bin/python benches/growth/growth.py rows 10000 100000 1000000 [--max-memory 1GiB]
    venv/bin/python benches/growth/growth.py parameters 2 10 50 100 200
    venv/bin/python benches/growth/growth.py passes 10000000
    venv/bin/python benches/growth/growth.py picture

Logistic regressions on standard normal columns, in Parquet files of a million rows that are made anew;
`dpm sample` at epsilon 1 without a report. `rows`: ten covariates, the default sampler. `parameters`:
100,000 rows, the default sampler as far as it goes, and ten iterations of dp-hmc. Each line is one
run: CPU seconds, user and system, seconds, and the peak of its memory. What was measured is added to
measured.csv beside this script, from which `picture` draws docs/scale.svg. `passes`: what reading the
columns beside memory adds to the CPU time of a sum over records, and that of reading as many bytes from
a file and nothing else, both from the page cache. Needs target/release/dpm, Linux, and for 10^8 rows
20 GB of disk.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MEASURED = HERE / "measured.csv"
FIELDS = ["sampler", "rows", "parameters", "max_memory", "cpu_seconds", "seconds", "peak_mib"]
PART = 1_000_000
# The most parameters that dp-laplace takes.
MOST = 100

MODEL = """\
record {{
  int<lower=0, upper=1> y;
  vector<lower=-5, upper=5>[{covariates}] x;
}}
parameters {{
  real alpha;
  vector[{covariates}] beta;
}}
model {{
  alpha ~ normal(0, 2);
  beta ~ normal(0, 2);
  y ~ bernoulli_logit(alpha + dot_product(x, beta));
}}
"""


def write(place, rows, covariates):
    """The model and its table, whose slopes are small."""
    (place / "m.dpm").write_text(MODEL.format(covariates=covariates))
    parts = place / "parts"
    parts.mkdir()
    slopes = np.linspace(-0.5, 0.5, covariates) / np.sqrt(covariates)
    for part, start in enumerate(range(0, rows, PART)):
        generator = np.random.default_rng([covariates, part])
        x = generator.standard_normal((min(PART, rows - start), covariates), dtype=np.float32)
        y = generator.random(len(x)) < 1 / (1 + np.exp(0.5 - x @ slopes))
        columns = {"y": pa.array(y)}
        columns |= {f"x.{j + 1}": pa.array(x[:, j]) for j in range(covariates)}
        pq.write_table(pa.table(columns), parts / f"{part:05}.parquet")


def run(place, arguments):
    """CPU seconds, seconds, and peak memory in MiB."""
    command = [ROOT / "target/release/dpm", "sample", "m.dpm", "parts", "--overwrite", "--quiet",
               "--no-report", "--epsilon", "1", "--delta", "1e-9", *arguments]  # fmt: skip
    start, peak = time.monotonic(), 0
    with open(place / "said", "w+") as said:
        child = subprocess.Popen(command, cwd=place, stderr=said)
        while True:
            # What wait4 says of memory includes this process, before the program took its place.
            peak = max(peak, peak_of(child.pid))
            pid, status, use = os.wait4(child.pid, os.WNOHANG)
            if pid != 0:
                break
            time.sleep(0.02)
        if status != 0:
            said.seek(0)
            sys.exit(said.read())
    return use.ru_utime + use.ru_stime, time.monotonic() - start, peak


def peak_of(pid):
    """The peak so far of a process that runs, in MiB."""
    with open(f"/proc/{pid}/status") as status:
        peak = [line.split()[1] for line in status if line.startswith("VmHWM")]
    return int(peak[0]) / 1024 if peak else 0


def measure(rows, covariates, max_memory, folder):
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        write(place, rows, covariates)
        limit = ["--max-memory", max_memory, "--spill-dir", name] if max_memory else []
        hmc = ["--algorithm", "dp-hmc", "--num-warmup", "2", "--num-samples", "8", "--clip-gradient", "1"]
        samplers = {"dp-laplace": []} if covariates < MOST else {}
        if not samplers or rows == 100_000:
            samplers["dp-hmc"] = hmc
        for sampler, arguments in samplers.items():
            used = run(place, [*arguments, *limit])
            line = [sampler, rows, covariates + 1, max_memory or "", *(f"{x:.4g}" for x in used)]
            print(*line, sep="\t", flush=True)
            is_new = not MEASURED.exists()
            with open(MEASURED, "a", newline="") as file:
                out = csv.writer(file)
                if is_new:
                    out.writerow(FIELDS)
                out.writerow(line)


def passes(rows, folder):
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        write(place, rows, 10)

        def each(memory):
            """CPU seconds of a sum over all records: those of many draws less those of few."""
            found = []
            for draws in ["2", "12"]:
                least = min(
                    run(place, ["--algorithm", "dp-hmc", "--num-warmup", "0", "--num-samples", draws, "--chains", "1",
                                "--threads", "1", "--max-memory", memory, "--spill-dir", name])[0]
                    for _ in range(3)
                )  # fmt: skip
                events = json.loads((place / "m-run/privacy.json").read_text())["events"]
                found.append((least, sum(event["count"] for event in events)))
            (few, sums), (many, more) = found
            return (many - few) / (more - sums)

        held, beside = each("100GiB"), each("0")
        bytes_of_row = 10 * 4 + 1
        size = rows * bytes_of_row
        with open(place / "bytes", "wb") as file:
            for _ in range(size >> 20):
                file.write(bytes(1 << 20))
        reading = []
        for _ in range(5):
            start = time.process_time()
            with open(place / "bytes", "rb", buffering=0) as file:
                buffer = bytearray(1 << 20)
                while file.readinto(buffer):
                    pass
            reading.append(time.process_time() - start)
        for what, seconds in [
            ("a sum, columns in memory", held),
            ("a sum, columns beside memory", beside),
            ("what reading adds", beside - held),
            ("reading the bytes alone", min(reading)),
        ]:
            print(f"{what:30} {seconds:.3f} s  {size / seconds / 1e9:6.2f} GB/s")


def picture():
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "dpm"
    import matplotlib.pyplot as plt

    with open(MEASURED) as file:
        lines = list(csv.DictReader(file))
    figure, axes = plt.subplots(2, 2, figsize=(8, 5.5), layout="constrained")
    for column, (by, fixed) in enumerate([("rows", "parameters"), ("parameters", "rows")]):
        value = {"parameters": "11", "rows": "100000"}[fixed]
        for sampler, limit, label in [
            ("dp-laplace", False, "default sampler"),
            ("dp-laplace", True, "with --max-memory"),
            ("dp-hmc", False, "dp-hmc, 10 draws"),
        ]:
            chosen = sorted(
                (int(line[by]), float(line["cpu_seconds"]), float(line["peak_mib"]))
                for line in lines
                if line["sampler"] == sampler and line[fixed] == value
                and bool(line["max_memory"]) == limit
            )  # fmt: skip
            if len(chosen) < 2:
                continue
            x, seconds, memory = zip(*chosen)
            axes[0, column].loglog(x, seconds, "o-", label=label)
            axes[1, column].loglog(x, memory, "o-", label=label)
        axes[0, column].set_title({"rows": "11 parameters", "parameters": "100,000 records"}[by])
        axes[1, column].set_xlabel({"rows": "records", "parameters": "parameters"}[by])
        axes[0, column].legend()
    axes[0, 0].set_ylabel("CPU seconds")
    axes[1, 0].set_ylabel("peak memory, MiB")
    for axis in axes.flat:
        axis.grid(alpha=0.3)
    figure.savefig(ROOT / "docs/scale.svg", metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["rows", "parameters", "passes", "picture"])
    parser.add_argument("numbers", type=int, nargs="*")
    parser.add_argument("--max-memory")
    parser.add_argument("--folder", help="where tables and spilled columns go")
    arguments = parser.parse_args()
    if arguments.what == "picture":
        return picture()
    for number in arguments.numbers:
        if arguments.what == "passes":
            passes(number, arguments.folder)
        elif arguments.what == "rows":
            measure(number, 10, arguments.max_memory, arguments.folder)
        else:
            measure(100_000, number - 1, arguments.max_memory, arguments.folder)


if __name__ == "__main__":
    main()
