"""Loading a CSV file against polars' reader on one thread.

    python3 -m venv venv && venv/bin/pip install polars==2.1.0
    venv/bin/python benches/csv/compare.py [ROWS]

The file, made anew, has ten columns of standard normals, as Python writes them and with six digits,
and one of zeros and ones. Ours is the time of a process that loads it into a vault, and so also
compiles a model and runs its loading program; of polars it is `read_csv` alone. Each is CPU
seconds, user and system, the least of seven runs in turn; memory is the peak of the process,
for polars beyond that of Python. Needs Linux or macOS.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REPEATS = 7
UNIT = 1 if sys.platform == "darwin" else 1024

POLARS = """
import resource, sys
import polars
def used():
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime, use.ru_maxrss
before = used()
table = polars.read_csv(sys.argv[1])
after = used()
print(*(a - b for a, b in zip(after, before)))
"""


def write(path, rows, form):
    uniform = random.Random(1)
    with open(path, "w") as file:
        file.write(",".join(f"x.{j}" for j in range(1, 11)) + ",y\n")
        for _ in range(rows):
            cells = [format(uniform.gauss(0, 1), form) for _ in range(10)]
            file.write(",".join(cells) + f",{uniform.randrange(2)}\n")


def build():
    """The path of the program that loads a file."""
    said = subprocess.run(
        ["cargo", "bench", "--bench", "csv", "--no-run", "--message-format", "json"],
        cwd=ROOT, check=True, stdout=subprocess.PIPE,
    ).stdout  # fmt: skip
    artifacts = map(json.loads, said.splitlines())
    return next(a["executable"] for a in artifacts
                if a.get("executable") and a["target"]["name"] == "csv")  # fmt: skip


def of_dpm(program, path):
    child = subprocess.Popen([program, path])
    _, status, use = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit("the file was not loaded")
    return use.ru_utime + use.ru_stime, use.ru_maxrss


def of_polars(path):
    said = subprocess.run(
        [sys.executable, "-c", POLARS, path],
        env=os.environ | {"POLARS_MAX_THREADS": "1"}, check=True, stdout=subprocess.PIPE,
    ).stdout  # fmt: skip
    return [float(word) for word in said.split()]


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    program = build()
    print(f"{rows} rows    {'CPU seconds':>24} {'peak MiB':>24}")
    print(f"{'digits':10}" + f" {'polars':>8} {'dpm':>8} {'ratio':>6}" * 2)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "table.csv")
        for digits, form in [("6", ".6g"), ("all", "")]:
            write(path, rows, form)
            pairs = [(of_polars(path), of_dpm(program, path)) for _ in range(REPEATS)]
            theirs, ours = ([min(values) for values in zip(*runs)] for runs in zip(*pairs))
            print(f"{digits:10}", end="")
            for their, our, unit, places in zip(theirs, ours, (1, 2**20 / UNIT), (3, 0)):
                print(f" {their / unit:8.{places}f} {our / unit:8.{places}f} {our / their:6.2f}", end="")
            print(flush=True)


if __name__ == "__main__":
    main()
