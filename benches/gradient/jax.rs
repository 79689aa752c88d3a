//! JAX on the same numbers, where the Python that `DPM_PYTHON` names has it.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::{Case, N, axes};

/// Seconds of JAX's best form on one core, without a frame and with one; none where it cannot run.
pub fn seconds(case: &Case) -> [Option<f64>; 2] {
    let (Some(form), Ok(python)) = (case.jax, std::env::var("DPM_PYTHON")) else {
        return [None, None];
    };
    match run(case, form, &python) {
        Ok(times) => times.map(Some),
        Err(message) => {
            eprintln!("no JAX for {}: {message}", case.name);
            [None, None]
        }
    }
}

fn run(case: &Case, form: &str, python: &str) -> Result<[f64; 2], String> {
    let d = case.theta.len();
    let mut child = Command::new(python)
        .args(["-c", SCRIPT, form])
        .args([N.to_string(), d.to_string(), case.clip.to_string()])
        .env(
            "XLA_FLAGS",
            "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
        )
        .env("JAX_PLATFORMS", "cpu")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot run `{python}`: {e}"))?;
    let numbers = [&case.rows, &case.outcomes, &case.theta, &axes(d)];
    let bytes: Vec<u8> = numbers
        .into_iter()
        .flatten()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    if let Some(mut stdin) = child.stdin.take() {
        // One that has ended for want of the package no longer reads.
        let _ = stdin.write_all(&bytes);
    }
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(text.lines().last().unwrap_or("no message").to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut found = text.split_whitespace().map(str::parse);
    match (found.next(), found.next()) {
        (Some(Ok(bare)), Some(Ok(in_frame))) => Ok([bare, in_frame]),
        _ => Err(format!("it printed `{}`", text.trim())),
    }
}

/// Two forms: gradients of each record's log-likelihood, and of what it sees the parameters
/// through, times its row.
const SCRIPT: &str = r#"
import os, sys, time
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy as np
import jax, jax.numpy as jnp
from jax.scipy.special import gammaln
jax.config.update("jax_enable_x64", True)
form, n, d, clip = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
numbers = np.frombuffer(sys.stdin.buffer.read())
width = (len(numbers) - n - d - d * d) // n
x, y, theta, axes = np.split(numbers, np.cumsum([n * width, n, d]))
x, y, theta, axes = (jnp.array(a) for a in (x.reshape(n, width), y, theta, axes.reshape(d, d)))

def student(eta, rest, y):
    sigma, nu = jnp.exp(rest[0]), jnp.exp(rest[1])
    z = (y - eta) / sigma
    return (gammaln(0.5 * (nu + 1)) - gammaln(0.5 * nu) - 0.5 * jnp.log(nu) - jnp.log(sigma)
            - 0.5 * (nu + 1) * jnp.log1p(z * z / nu))

LIKELIHOODS = {
    "logistic": lambda eta, rest, y: y * eta - jax.nn.softplus(eta),
    "poisson": lambda eta, rest, y: y * eta - jnp.exp(eta),
    "student": student,
    "softmax": lambda eta, rest, y: jax.nn.log_softmax(eta)[y.astype(int) - 1],
}
log_likelihood = LIKELIHOODS[form]
columns = {"softmax": 10, "student": 10}.get(form, d)

def predictor(theta, x):
    if form == "softmax":
        return x @ theta.reshape(10, 5)
    eta = x[:columns] @ theta[:columns]
    return eta + x[columns] if form == "poisson" else eta

def clipped(gradients):
    length = jnp.sqrt((gradients * gradients).sum(1))
    return (gradients * jnp.minimum(1.0, clip / length)[:, None]).sum(0)

def direct(theta, axes):
    of_record = lambda t, x, y: log_likelihood(predictor(t, x), t[columns:], y)
    gradients = jax.vmap(jax.grad(of_record), (None, 0, 0))(theta, x, y)
    return clipped(gradients if axes is None else gradients @ axes)

def seen(theta, axes):
    eta = jax.vmap(predictor, (None, 0))(theta, x)
    of_eta = jax.vmap(jax.grad(log_likelihood, (0, 1)), (0, None, 0))
    residual, rest = of_eta(eta, theta[columns:], y)
    if form == "softmax":
        gradients = (x[:, :, None] * residual[:, None, :]).reshape(n, -1)
    else:
        gradients = residual[:, None] * x[:, :columns]
        if d > columns:
            gradients = jnp.concatenate([gradients, rest], 1)
    return clipped(gradients if axes is None else gradients @ axes)

for frame in (None, axes):
    best = float("inf")
    for f in (direct, seen):
        run = jax.jit(lambda t, f=f: f(t, frame))
        run(theta).block_until_ready()
        times = []
        for _ in range(11):
            start = time.perf_counter()
            run(theta).block_until_ready()
            times.append(time.perf_counter() - start)
        best = min(best, sorted(times)[5])
    print(best)
"#;
