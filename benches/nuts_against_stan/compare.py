"""Bulk effective sample size per gradient: `dpm sample --algorithm nuts` against Stan.

    python3 -m venv venv && venv/bin/pip install -r benches/nuts_against_stan/requirements.txt
    cargo build --release
    venv/bin/python benches/nuts_against_stan/compare.py target/release/dpm

For each posterior both run the same numbers of chains, warm-up and sampling
iterations with their defaults, for the same seeds; the measure is the smallest bulk
ESS over the parameters divided by the leapfrog steps after warm-up, the median over
the seeds. It does not depend on the machine. The last column is ours over Stan's.
Building four Stan programs takes some minutes.
"""

import csv
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import arviz
import numpy as np
import stan

ROOT = Path(__file__).resolve().parents[2]
SEEDS = [1, 2, 3]
CHAINS, WARMUP, SAMPLES = 4, 1000, 1000

# The Stan program, and what its data block takes from the columns and constants.
POSTERIORS = {
    "wells_data-wells_dae_inter_model": (
        """
        data { int N; array[N] int switched; vector[N] d; vector[N] a; vector[N] e; }
        parameters { real alpha; vector[6] beta; }
        model {
          switched ~ bernoulli_logit(alpha + beta[1] * d + beta[2] * a + beta[3] * e
            + beta[4] * d .* a + beta[5] * d .* e + beta[6] * a .* e);
        }
        """,
        lambda c, k: {
            "switched": c["switched"].astype(int),
            "d": (c["dist"] - k["mean_dist"]) / 100,
            "a": c["arsenic"] - k["mean_arsenic"],
            "e": (c["educ"] - k["mean_educ"]) / 4,
        },
    ),
    "kidiq-robust_t": (
        """
        data { int N; vector[N] kid_score; vector[N] mom_hs; vector[N] mom_iq; }
        parameters { vector[3] beta; real<lower=0> sigma; real<lower=1> nu; }
        model {
          beta[1] ~ normal(90, 50); beta[2] ~ normal(0, 20); beta[3] ~ normal(0, 2);
          sigma ~ exponential(0.05); nu - 1 ~ gamma(2, 0.1);
          kid_score ~ student_t(nu, beta[1] + beta[2] * mom_hs + beta[3] * (mom_iq - 100), sigma);
        }
        """,
        lambda c, k: {name: c[name] for name in ("kid_score", "mom_hs", "mom_iq")},
    ),
    "eight_schools-eight_schools_noncentered": (
        """
        data { int N; int J; array[N] int school; vector[N] y; vector[N] sigma; }
        parameters { vector[J] theta_trans; real mu; real<lower=0> tau; }
        transformed parameters { vector[J] theta = mu + tau * theta_trans; }
        model {
          theta_trans ~ normal(0, 1); mu ~ normal(0, 5); tau ~ cauchy(0, 5);
          y ~ normal(theta[school], sigma);
        }
        """,
        lambda c, k: {
            "J": k["J"],
            "school": c["school"].astype(int),
            "y": c["y"],
            "sigma": c["sigma"],
        },
    ),
    "rats_data-rats_model": (
        """
        data { int N; int N_rats; real xbar; array[N] int rat; vector[N] x; vector[N] y; }
        parameters {
          vector[N_rats] alpha; vector[N_rats] beta; real mu_alpha; real mu_beta;
          real<lower=0> sigma_y; real<lower=0> sigma_alpha; real<lower=0> sigma_beta;
        }
        model {
          mu_alpha ~ normal(0, 100); mu_beta ~ normal(0, 100);
          alpha ~ normal(mu_alpha, sigma_alpha); beta ~ normal(mu_beta, sigma_beta);
          y ~ normal(alpha[rat] + beta[rat] .* (x - xbar), sigma_y);
        }
        """,
        lambda c, k: {
            "N_rats": k["N_rats"],
            "xbar": k["xbar"],
            "rat": c["rat"].astype(int),
            "x": c["x"],
            "y": c["y"],
        },
    ),
}


def read(name):
    with open(ROOT / "models" / f"{name}.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}
    constants = ROOT / "models" / f"{name}.constants.json"
    return columns, json.loads(constants.read_text()) if constants.exists() else {}


def least_ess(draws):
    """draws: name -> [chains, draws]"""
    return min(
        float(arviz.ess(np.asarray(values), method="bulk")) for values in draws.values()
    )


def of_stan(program, name, data, seed):
    model = stan.build(program, data=data, random_seed=seed)
    fit = model.sample(num_chains=CHAINS, num_warmup=WARMUP, num_samples=SAMPLES)
    draws = {}
    for parameter in model.param_names:
        if parameter == "theta":
            continue
        values = fit[parameter].reshape(-1, SAMPLES, CHAINS)
        for i, value in enumerate(values):
            draws[f"{parameter}.{i + 1}"] = value.T
    return least_ess(draws) / float(fit["n_leapfrog__"].sum())


def of_dpm(dpm, name, seed):
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        subprocess.run(
            [dpm, "sample", f"models/{name}.dpm", f"models/{name}.csv", "--algorithm", "nuts",
             "--not-private", "--chains", str(CHAINS), "--num-warmup", str(WARMUP),
             "--num-samples", str(SAMPLES), "--seed", str(seed), "--out", str(run), "--quiet"],
            cwd=ROOT, check=True, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        draws, leapfrogs = {}, 0.0
        for chain in sorted(run.glob("chain-*.csv")):
            lines = (line for line in chain.open() if not line.startswith("#"))
            rows = list(csv.DictReader(lines))
            leapfrogs += sum(float(row["n_leapfrog__"]) for row in rows)
            for key in rows[0]:
                if not key.endswith("__") and not key.startswith("theta."):
                    draws.setdefault(key, []).append([float(row[key]) for row in rows])
    return least_ess(draws) / leapfrogs


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    dpm = str(Path(sys.argv[1]).resolve())
    chosen = sys.argv[2:] or POSTERIORS
    print(f"{'posterior':42} {'Stan':>8} {'dpm':>8} {'ratio':>6}")
    for name in chosen:
        program, wanted = POSTERIORS[name]
        columns, constants = read(name)
        data = wanted(columns, constants)
        data = {key: v.tolist() if hasattr(v, "tolist") else v for key, v in data.items()}
        data["N"] = len(next(iter(columns.values())))
        theirs = statistics.median(of_stan(program, name, data, seed) for seed in SEEDS)
        ours = statistics.median(of_dpm(dpm, name, seed) for seed in SEEDS)
        print(f"{name:42} {theirs:8.4f} {ours:8.4f} {ours / theirs:6.2f}", flush=True)


if __name__ == "__main__":
    main()
