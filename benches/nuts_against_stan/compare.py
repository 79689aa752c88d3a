"""`dpm sample --algorithm nuts` against Stan: bulk effective sample size per gradient and per
second.

    python3 -m venv venv && venv/bin/pip install -r benches/nuts_against_stan/requirements.txt
    cargo build --release
    venv/bin/python benches/nuts_against_stan/compare.py target/release/dpm [POSTERIOR ...]

For each posterior both run the same numbers of chains, warm-up and sampling
iterations with their defaults, for the same seeds, one chain at a time. The effective sample size
is the smallest over the parameters. It is divided by the leapfrog steps after warm-up, which does
not depend on the machine, and by the seconds that warm-up and sampling took by the sampler's own
clock. Each is the median over the seeds; ratios are ours over Stan's. Building the Stan programs
takes ten minutes.
"""

import csv
import json
import os
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
        model {
          vector[J] theta = mu + tau * theta_trans;
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
    "GLM_Binomial_data-GLM_Binomial_model": (
        """
        data { int N; vector[N] year; array[N] int C; array[N] int trials; }
        parameters { real alpha; real beta1; real beta2; }
        model {
          alpha ~ normal(0, 100); beta1 ~ normal(0, 100); beta2 ~ normal(0, 100);
          C ~ binomial_logit(trials, alpha + beta1 * year + beta2 * year .* year);
        }
        """,
        lambda c, k: {
            "year": c["year"],
            "C": c["C"].astype(int),
            "trials": c["N"].astype(int),
        },
    ),
    "GLM_Poisson_Data-GLM_Poisson_model": (
        """
        data { int N; vector[N] year; array[N] int C; }
        transformed data {
          vector[N] year2 = year .* year;
          vector[N] year3 = year2 .* year;
        }
        parameters {
          real<lower=-20, upper=20> alpha; real<lower=-10, upper=10> beta1;
          real<lower=-10, upper=10> beta2; real<lower=-10, upper=10> beta3;
        }
        model { C ~ poisson_log(alpha + beta1 * year + beta2 * year2 + beta3 * year3); }
        """,
        lambda c, k: {"year": c["year"], "C": c["C"].astype(int)},
    ),
    "earnings-logearn_interaction": (
        """
        data { int N; vector[N] earn; vector[N] height; vector[N] male; }
        transformed data {
          vector[N] log_earn = log(earn);
          vector[N] inter = height .* male;
        }
        parameters { vector[4] beta; real<lower=0> sigma; }
        model {
          log_earn ~ normal(beta[1] + beta[2] * height + beta[3] * male + beta[4] * inter, sigma);
        }
        """,
        lambda c, k: {name: c[name] for name in ("earn", "height", "male")},
    ),
    "irt_2pl-irt_2pl": (
        """
        data {
          int N; int I; int J;
          array[N] int item; array[N] int person; array[N] int y;
        }
        parameters {
          real<lower=0> sigma_theta; vector[J] theta; real<lower=0> sigma_a; vector<lower=0>[I] a;
          real mu_b; real<lower=0> sigma_b; vector[I] b;
        }
        model {
          sigma_theta ~ cauchy(0, 2); theta ~ normal(0, sigma_theta);
          sigma_a ~ cauchy(0, 2); a ~ lognormal(0, sigma_a);
          mu_b ~ normal(0, 5); sigma_b ~ cauchy(0, 2); b ~ normal(mu_b, sigma_b);
          y ~ bernoulli_logit(a[item] .* (theta[person] - b[item]));
        }
        """,
        lambda c, k: k | {name: c[name].astype(int) for name in ("item", "person", "y")},
    ),
    "kidiq-kidscore_momhsiq": (
        """
        data { int N; vector[N] kid_score; vector[N] mom_hs; vector[N] mom_iq; }
        parameters { vector[3] beta; real<lower=0> sigma; }
        model {
          sigma ~ cauchy(0, 2.5);
          kid_score ~ normal(beta[1] + beta[2] * mom_hs + beta[3] * mom_iq, sigma);
        }
        """,
        lambda c, k: {name: c[name] for name in ("kid_score", "mom_hs", "mom_iq")},
    ),
    "low_dim_gauss_mix": (
        """
        data { int N; vector[N] y; }
        parameters { ordered[2] mu; array[2] real<lower=0> sigma; real<lower=0, upper=1> theta; }
        model {
          sigma ~ normal(0, 2); mu ~ normal(0, 2); theta ~ beta(5, 5);
          for (n in 1:N)
            target += log_mix(theta, normal_lpdf(y[n] | mu[1], sigma[1]),
                              normal_lpdf(y[n] | mu[2], sigma[2]));
        }
        """,
        lambda c, k: {"y": c["y"]},
    ),
    "nes1972-nes": (
        """
        data { int N; vector[N] partyid7; matrix[N, 8] x; }
        parameters { vector[9] beta; real<lower=0> sigma; }
        model { partyid7 ~ normal(beta[1] + x * beta[2:9], sigma); }
        """,
        lambda c, k: {
            "partyid7": c["partyid7"],
            "x": np.column_stack(
                [c["real_ideo"], c["race_adj"]]
                + [c["age_discrete"] == age for age in (2, 3, 4)]
                + [c["educ1"], c["gender"], c["income"]]
            ).astype(float),
        },
    ),
    "radon_mn-radon_hierarchical_intercept_noncentered": (
        """
        data {
          int N; int J;
          vector[N] log_radon; vector[N] floor_measure; vector[N] log_uppm; array[N] int county;
        }
        parameters {
          vector[J] alpha_raw; vector[2] beta; real mu_alpha;
          real<lower=0> sigma_alpha; real<lower=0> sigma_y;
        }
        model {
          vector[J] alpha = mu_alpha + sigma_alpha * alpha_raw;
          alpha_raw ~ normal(0, 1); beta ~ normal(0, 10); mu_alpha ~ normal(0, 10);
          sigma_alpha ~ normal(0, 1); sigma_y ~ normal(0, 1);
          log_radon ~ normal(
            alpha[county] + beta[1] * log_uppm + beta[2] * floor_measure, sigma_y);
        }
        """,
        lambda c, k: {
            "J": k["J"],
            "county": c["county_idx"].astype(int),
            **{name: c[name] for name in ("log_radon", "floor_measure", "log_uppm")},
        },
    ),
    "sblrc-blr": (
        """
        data { int N; int D; matrix[N, D] x; vector[N] y; }
        parameters { vector[D] beta; real<lower=0> sigma; }
        model { beta ~ normal(0, 10); sigma ~ normal(0, 10); y ~ normal(x * beta, sigma); }
        """,
        lambda c, k: {
            "D": k["D"],
            "x": np.column_stack([c[f"x{j}"] for j in range(1, 6)]),
            "y": c["y"],
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


def seconds_of(lines):
    """The total time in the words of Stan, which both programs use."""
    return sum(float(line.split()[-3]) for line in lines if line.rstrip(" \n'\"]}").endswith("(Total)"))


def of_stan(program, data, seed):
    draws, leapfrogs, seconds = {}, 0.0, 0.0
    for chain in range(CHAINS):
        model = stan.build(program, data=data, random_seed=CHAINS * seed + chain)
        fit = model.sample(num_chains=1, num_warmup=WARMUP, num_samples=SAMPLES)
        for parameter in model.param_names:
            for i, value in enumerate(fit[parameter].reshape(-1, SAMPLES)):
                draws.setdefault(f"{parameter}.{i + 1}", []).append(value)
        leapfrogs += float(fit["n_leapfrog__"].sum())
        messages = map(json.loads, fit.stan_outputs[0].decode().splitlines())
        spoken = (m["values"] for m in messages if isinstance(m["values"], list))
        seconds += seconds_of(str(line) for values in spoken for line in values)
    ess = least_ess(draws)
    return ess / leapfrogs, ess / seconds, model.param_names


def of_dpm(dpm, name, parameters, seed):
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        subprocess.run(
            [dpm, "sample", f"models/{name}.dpm", f"models/{name}.csv", "--algorithm", "nuts",
             "--not-private", "--chains", str(CHAINS), "--num-warmup", str(WARMUP),
             "--num-samples", str(SAMPLES), "--seed", str(seed), "--out", str(run), "--quiet",
             "--threads", "1"],
            cwd=ROOT, check=True, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        draws, leapfrogs, seconds = {}, 0.0, 0.0
        for chain in sorted(run.glob("chain-*.csv")):
            lines = chain.read_text().splitlines()
            seconds += seconds_of(lines)
            rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
            leapfrogs += sum(float(row["n_leapfrog__"]) for row in rows)
            for key in rows[0]:
                if key.split(".")[0] in parameters:
                    draws.setdefault(key, []).append([float(row[key]) for row in rows])
    ess = least_ess(draws)
    return ess / leapfrogs, ess / seconds


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    dpm = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        # Stan's compiler leaves object files where it runs.
        os.chdir(folder)
        compare(dpm, sys.argv[2:] or POSTERIORS)
        os.chdir(ROOT)


def compare(dpm, chosen):
    print(f"{'':50} {'per leapfrog step':>24} {'per second':>24}")
    print(f"{'posterior':50}" + f" {'Stan':>8} {'dpm':>8} {'ratio':>6}" * 2)
    ratios = []
    for name in chosen:
        program, wanted = POSTERIORS[name]
        columns, constants = read(name)
        data = wanted(columns, constants)
        data = {key: v.tolist() if hasattr(v, "tolist") else v for key, v in data.items()}
        data["N"] = len(next(iter(columns.values())))
        *theirs, parameters = zip(*(of_stan(program, data, seed) for seed in SEEDS))
        ours = [of_dpm(dpm, name, parameters[0], seed) for seed in SEEDS]
        theirs, ours = np.median(theirs, axis=1), np.median(ours, axis=0)
        ratios.append(ours / theirs)
        steps, seconds = zip(theirs, ours, ours / theirs)
        print(f"{name:50} {steps[0]:8.4f} {steps[1]:8.4f} {steps[2]:6.2f}"
              f" {seconds[0]:8.0f} {seconds[1]:8.0f} {seconds[2]:6.2f}", flush=True)  # fmt: skip
    steps, seconds = np.exp(np.mean(np.log(ratios), axis=0))
    print(f"{'geometric mean':50} {'':8} {'':8} {steps:6.2f} {'':8} {'':8} {seconds:6.2f}")


if __name__ == "__main__":
    main()
