"""Checks that a run on several ranks of MPI is the run of one process, and what ends one.

    cargo build --release --features mpi
    python check_ranks.py --dpm target/release/dpm [--mpirun "mpirun --oversubscribe"]

Runs private samplers on a table in nine files with 1, 2 and 4 ranks and compares every draw with
that of one process that was started without mpirun; kills a rank in the middle of a run and resumes
with another number of ranks; gives ranks what they cannot read. Exits with 1 and says what is wrong.
Needs nothing but Python's own library.
"""
import argparse
import csv
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODEL = """\
record {
  int<lower=0, upper=1> y;
  vector<lower=-3, upper=3>[2] x;
}
parameters {
  real alpha;
  vector[2] beta;
}
model {
  alpha ~ normal(0, 2);
  beta ~ normal(0, 2);
  y ~ bernoulli_logit(alpha + dot_product(x, beta));
}
"""
BUDGET = "--epsilon 2 --delta 1e-6 --insecure-noise-seed 5 --no-report --quiet"
ROWS = 9000
# Seconds, far more than anything here takes.
GUARD = 600


def write_table(place):
    """Nine files of very different sizes; the rows of an `id` are in one of them."""
    place.mkdir()
    generator = random.Random(3)
    row = 0
    for part, rows in enumerate([1, 3000, 10, 2000, 500, 1500, 989, 600, 400]):
        with open(place / f"{part}.csv", "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["y", "x.1", "x.2", "id"])
            for _ in range(rows):
                x = [round(generator.gauss(0, 1), 3) for _ in range(2)]
                y = int(generator.random() < 1 / (1 + 2.718 ** (0.3 - x[0])))
                out.writerow(["NA" if row % 50 == 7 else y, *x, f"{part}-{row // 3}"])
                row += 1
    assert row == ROWS


def draws(run):
    """The draws of all chains; comments have times in them."""
    return [
        [line for line in path.read_text().splitlines() if not line.startswith("#")]
        for path in sorted(Path(run).glob("chain-*.csv"))
    ]


class Check:
    def __init__(self, dpm, mpirun, place):
        self.dpm, self.mpirun, self.place = dpm, mpirun, place

    def command(self, arguments, ranks):
        start = [*self.mpirun, "-n", str(ranks)] if ranks else []
        return [*start, self.dpm, *shlex.split(arguments)]

    def run(self, arguments, ranks=None, code=0, **others):
        done = subprocess.run(
            self.command(arguments, ranks), cwd=self.place, capture_output=True, text=True, **others
        )
        if done.returncode != code:
            sys.exit(f"{arguments} on {ranks} ranks: exit code {done.returncode}\n{done.stderr}")
        return done.stderr

    def same_draws(self):
        for settings in [
            "",
            "--unit id",
            "--algorithm dp-hmc --num-samples 50 --num-warmup 10 --clip-gradient 2",
            "--algorithm dp-penalty --num-samples 200 --num-warmup 50",
            "--algorithm dp-sgld --batch-rate 0.1 --num-samples 100 --num-warmup 10 --clip-gradient 2",
            "--algorithm dp-barker --batch-size 500 --num-samples 50 --num-warmup 10",
        ]:
            sample = f"sample m.dpm parts {BUDGET} --overwrite {settings}"
            self.run(f"{sample} --out alone")
            expected = draws(self.place / "alone")
            assert expected and all(len(chain) > 10 for chain in expected)
            for ranks in [1, 2, 4]:
                self.run(f"{sample} --out ranks", ranks)
                if draws(self.place / "ranks") != expected:
                    sys.exit(f"{settings or 'the default'}: {ranks} ranks give other draws")
            print(f"the same draws on 1, 2 and 4 ranks: {settings or 'the default'}")

    def killed(self):
        """A rank that dies ends the run; with other ranks it goes on, and is charged once."""
        self.run("ledger create budget --epsilon 5 --delta 1e-5")
        sample = (
            "sample m.dpm parts --epsilon 2 --delta 1e-6 --ledger budget --quiet --no-report "
            "--algorithm dp-penalty --num-samples 40000 --num-warmup 10 --chains 2 --out killed"
        )

        def kept():
            draws = self.place.glob("killed/unfinished/chain-*.draws")
            return sum(file.stat().st_size for file in draws)

        for rank in [1, 0]:
            before = kept()
            run = subprocess.Popen(
                self.command(sample, 3), cwd=self.place, stderr=subprocess.PIPE, text=True
            )
            # Until it makes draws. The limits are guards against hanging.
            deadline = time.time() + GUARD
            while not (pids := self.ranks_of(3)) or kept() <= before:
                if time.time() > deadline or run.poll() is not None:
                    sys.exit(f"the run to be killed did not begin: {run.communicate()[1]}")
                time.sleep(0.05)
            os.kill(pids[rank], signal.SIGKILL)
            if run.wait(timeout=GUARD) == 0:
                sys.exit("a run without one of its ranks ended well")
            sample = "sample --resume killed --quiet"
        self.run(sample, 2)
        chains = draws(self.place / "killed")
        if len(chains) != 2 or any(len(chain) < 30000 for chain in chains):
            sys.exit("the resumed run has not its draws")
        charged = json.loads(
            subprocess.run(
                [self.dpm, "ledger", "show", "budget", "--format", "json"],
                cwd=self.place, capture_output=True, text=True, check=True,
            ).stdout
        )
        if charged["runs"]["runs"] != 1 or charged["runs"]["resumed"] != 2:
            sys.exit(f"charged other than once: {charged}")
        print("two kills of a rank, resumed on 2 ranks, charged once")

    def ranks_of(self, count):
        """The processes of the run, in the order of their ranks, once all are there."""
        found = {}
        for folder in Path("/proc").iterdir():
            try:
                if os.readlink(folder / "exe") != self.dpm:
                    continue
                words = (folder / "environ").read_bytes().decode().split("\0")
            except OSError:
                continue
            environment = dict(word.split("=", 1) for word in words if "=" in word)
            rank = environment.get("OMPI_COMM_WORLD_RANK") or environment.get("PMI_RANK")
            found[rank] = int(folder.name)
        return [found[rank] for rank in sorted(found)] if len(found) == count else []

    def refusals(self):
        """What goes wrong at one rank is said once, with its code, and leaves nothing behind."""
        bad = self.place / "bad"
        bad.mkdir()
        for part in (self.place / "parts").iterdir():
            (bad / part.name).write_text(part.read_text())
        lines = (bad / "7.csv").read_text().splitlines()
        for title, content, expected in [
            ("a row that cannot be read", [*lines, "77777,0,0,z"], "7.csv"),
            ("another schema", ["y,x.1,other,id", *lines[1:]], "x.2"),
            ("no file", None, "7.csv"),
        ]:
            (bad / "7.csv").unlink()
            if content is None:
                (bad / "7.csv").mkdir()
                (bad / "7.csv" / "x.parquet").write_bytes(b"PAR1 and then nothing")
                expected = "x.parquet"
            else:
                (bad / "7.csv").write_text("\n".join(content) + "\n")
            said = self.run(f"sample m.dpm bad {BUDGET} --out refused", 4, code=2)
            if said.count("error:") != 1 or expected not in said or "77777" in said:
                sys.exit(f"{title}: {said}")
        units = self.place / "units"
        units.mkdir()
        for part in range(4):
            (units / f"{part}.csv").write_text("y,x.1,x.2,id\n1,0,0,same\n")
        for arguments, expected in [
            (f"sample m.dpm units --unit id {BUDGET}", "several ranks"),
            (f"sample m.dpm - {BUDGET}", "standard input"),
            ("sample m.dpm parts --algorithm hmc --not-private", "start one process"),
            (f"sample m.dpm nowhere {BUDGET}", "nowhere"),
            (f"sample m.dpm parts {BUDGET} --no-such-flag", "no-such-flag"),
            (f"sample other.dpm parts {BUDGET}", "other.dpm"),
        ]:
            said = self.run(f"{arguments} --out refused", 4, code=2, stdin=subprocess.DEVNULL)
            if said.count("error:") != 1 or expected not in said:
                sys.exit(f"{arguments}: {said}")
        if (self.place / "refused").exists():
            sys.exit("a refused run has left files")
        print("errors of one rank, of all, and of what cannot be divided are said once")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dpm", required=True)
    parser.add_argument("--mpirun", default="mpirun --oversubscribe")
    arguments = parser.parse_args()
    # Open MPI asks twice before it starts anything for root, who runs the checks in containers.
    os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "m.dpm").write_text(MODEL)
        write_table(place / "parts")
        check = Check(os.path.realpath(arguments.dpm), shlex.split(arguments.mpirun), place)
        check.same_draws()
        check.refusals()
        check.killed()


if __name__ == "__main__":
    main()
