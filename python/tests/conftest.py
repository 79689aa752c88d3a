"""What the tests share: a model of the wells, its table, and the program."""

import os
import signal
from pathlib import Path

import pytest

import dpm_bayes as dpm

MODELS = Path(__file__).parents[2] / "models"
WELLS = MODELS / "wells_data-wells_dae_inter_model.dpm"
TABLE = WELLS.with_suffix(".csv")
CONSTANTS = {"mean_dist": 48.3, "mean_arsenic": 1.66, "mean_educ": 4.8}

# Noise from a seed, so that runs can be compared to the bit.
SEEDED = {"epsilon": 1, "delta": 1e-6, "insecure_noise_seed": 3}

BERNOULLI = """record {
  int<lower=0, upper=1> y;
}
parameters {
  real a;
}
model {
  a ~ normal(0, 2);
  y ~ bernoulli_logit(a);
}
"""

# Tests that press Ctrl-C need it to be heard, which it is not in what a script runs in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DPM", os.path.abspath(dpm.program()))
    monkeypatch.chdir(tmp_path)
