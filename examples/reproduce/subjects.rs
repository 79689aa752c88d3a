//! Models of many kinds, with tables that are made up from them: the parameters are drawn from
//! the prior, covariates are the example's own, outcomes are drawn from the model.

use crate::random::{Random, dot};

/// A model, and a way to make tables for it.
pub struct Subject {
    pub name: &'static str,
    pub program: &'static str,
    /// A table of so many records.
    pub make: fn(&mut Random, usize) -> Dataset,
    /// Whether the parameters are a draw from the prior and the records one from the model; what
    /// can be true elsewhere is only the posterior without privacy.
    pub is_true: bool,
}

/// A table, and the parameters that it was made from.
pub struct Dataset {
    /// Values of the parameters in the order of the program, elements one by one; where they are
    /// not true, a place near the posterior.
    pub parameters: Vec<f64>,
    /// Records, with values in the order of the program's columns.
    pub records: Vec<Vec<f64>>,
}

impl Dataset {
    /// So many records, each made by itself.
    pub fn of(n: usize, parameters: Vec<f64>, record: impl FnMut(usize) -> Vec<f64>) -> Dataset {
        Dataset {
            parameters,
            records: (0..n).map(record).collect(),
        }
    }
}

pub const LOGISTIC: Subject = Subject {
    name: "logistic",
    program: "
        record { int<lower=0, upper=1> y; vector<lower=-3, upper=3>[4] x; }
        parameters { real alpha; vector[4] beta; }
        model {
          alpha ~ normal(0, 1);
          beta ~ normal(0, 0.7);
          y ~ bernoulli_logit(alpha + dot_product(x, beta));
        }",
    make: |random, n| {
        let alpha = random.normal(0.0, 1.0);
        let beta: [f64; 4] = random.normals(0.0, 0.7);
        let parameters = [&[alpha][..], &beta].concat();
        Dataset::of(n, parameters, |_| {
            let x: [f64; 4] = random.covariates();
            let y = random.bernoulli_logit(alpha + dot(&x, &beta));
            [&[y][..], &x].concat()
        })
    },
    is_true: true,
};

const POISSON: Subject = Subject {
    name: "poisson",
    program: "
        record { int<lower=0, upper=60> y; vector<lower=-3, upper=3>[3] x; }
        parameters { real alpha; vector[3] beta; }
        model {
          alpha ~ normal(0, 0.7);
          beta ~ normal(0, 0.3);
          y ~ poisson_log(alpha + dot_product(x, beta));
        }",
    make: |random, n| {
        let alpha = random.normal(0.0, 0.7);
        let beta: [f64; 3] = random.normals(0.0, 0.3);
        let parameters = [&[alpha][..], &beta].concat();
        Dataset::of(n, parameters, |_| {
            let x: [f64; 3] = random.covariates();
            let y = random.poisson((alpha + dot(&x, &beta)).exp());
            [&[y.min(60.0)][..], &x].concat()
        })
    },
    is_true: true,
};

const NEGATIVE_BINOMIAL: Subject = Subject {
    name: "negative-binomial",
    program: "
        record {
          int<lower=0, upper=1000> y;
          real<lower=0.2, upper=5> exposure;
          vector<lower=-3, upper=3>[2] x;
        }
        parameters { real alpha; vector[2] beta; real<lower=0> phi; }
        model {
          alpha ~ normal(0, 0.7);
          beta ~ normal(0, 0.3);
          phi ~ lognormal(0.5, 0.5);
          y ~ neg_binomial_2_log(log(exposure) + alpha + dot_product(x, beta), phi);
        }",
    make: |random, n| {
        let alpha = random.normal(0.0, 0.7);
        let beta: [f64; 2] = random.normals(0.0, 0.3);
        let phi = random.lognormal(0.5, 0.5);
        let parameters = [&[alpha][..], &beta, &[phi]].concat();
        Dataset::of(n, parameters, |_| {
            let exposure = random.uniform(0.2, 5.0);
            let x: [f64; 2] = random.covariates();
            let mean = exposure * (alpha + dot(&x, &beta)).exp();
            // A gamma number may be 0 to all digits.
            let rate = (mean * random.gamma(phi, phi)).max(1e-9);
            let y = random.poisson(rate).min(1000.0);
            [&[y, exposure][..], &x].concat()
        })
    },
    is_true: true,
};

const ORDERED: Subject = Subject {
    name: "ordered-logit",
    program: "
        record { int<lower=1, upper=5> y; vector<lower=-3, upper=3>[3] x; }
        parameters { vector[3] beta; ordered[4] cut; }
        model {
          beta ~ normal(0, 0.7);
          cut ~ normal(0, 2);
          y ~ ordered_logistic(dot_product(x, beta), cut);
        }",
    make: |random, n| {
        let beta: [f64; 3] = random.normals(0.0, 0.7);
        let mut cut: [f64; 4] = random.normals(0.0, 2.0);
        cut.sort_by(f64::total_cmp);
        let parameters = [&beta[..], &cut].concat();
        Dataset::of(n, parameters, |_| {
            let x: [f64; 3] = random.covariates();
            // A logistic number about the predictor, and the cuts that it is above.
            let u = random.uniform(0.0, 1.0);
            let latent = dot(&x, &beta) + (u / (1.0 - u)).ln();
            let above = cut.iter().filter(|c| latent > **c).count();
            [&[1.0 + above as f64][..], &x].concat()
        })
    },
    is_true: true,
};

const STUDENT_T: Subject = Subject {
    name: "student-t",
    program: "
        record { real<lower=-1000, upper=1000> y; vector<lower=-3, upper=3>[2] x; }
        parameters { real alpha; vector[2] beta; real<lower=0> sigma; real<lower=1> nu; }
        model {
          alpha ~ normal(0, 2);
          beta ~ normal(0, 1);
          sigma ~ lognormal(0, 0.5);
          nu - 1 ~ gamma(2, 0.1);
          y ~ student_t(nu, alpha + dot_product(x, beta), sigma);
        }",
    make: |random, n| {
        let alpha = random.normal(0.0, 2.0);
        let beta: [f64; 2] = random.normals(0.0, 1.0);
        let sigma = random.lognormal(0.0, 0.5);
        let nu = 1.0 + random.gamma(2.0, 0.1);
        let parameters = [&[alpha][..], &beta, &[sigma, nu]].concat();
        Dataset::of(n, parameters, |_| {
            let x: [f64; 2] = random.covariates();
            let y = alpha + dot(&x, &beta) + sigma * random.student_t(nu);
            [&[y][..], &x].concat()
        })
    },
    is_true: true,
};

pub const LOGNORMAL: Subject = Subject {
    name: "lognormal",
    program: "
        record { real<lower=0.001, upper=1000000> y; vector<lower=-3, upper=3>[2] x; }
        parameters { real alpha; vector[2] beta; real<lower=0> sigma; }
        model {
          alpha ~ normal(2, 1);
          beta ~ normal(0, 0.5);
          sigma ~ lognormal(-0.5, 0.5);
          y ~ lognormal(alpha + dot_product(x, beta), sigma);
        }",
    make: |random, n| {
        let alpha = random.normal(2.0, 1.0);
        let beta: [f64; 2] = random.normals(0.0, 0.5);
        let sigma = random.lognormal(-0.5, 0.5);
        let parameters = [&[alpha][..], &beta, &[sigma]].concat();
        Dataset::of(n, parameters, |_| {
            let x: [f64; 2] = random.covariates();
            let y = random.lognormal(alpha + dot(&x, &beta), sigma);
            [&[y][..], &x].concat()
        })
    },
    is_true: true,
};

pub const SOFTMAX: Subject = Subject {
    name: "softmax",
    program: "
        record { int<lower=1, upper=4> y; vector<lower=-3, upper=3>[2] x; }
        parameters { vector[3] alpha; vector[3] beta; vector[3] gamma; }
        model {
          alpha ~ normal(0, 1);
          beta ~ normal(0, 0.7);
          gamma ~ normal(0, 0.7);
          y ~ categorical_logit(append_row(0, alpha + beta * x[1] + gamma * x[2]));
        }",
    make: |random, n| {
        let alpha: [f64; 3] = random.normals(0.0, 1.0);
        let beta: [f64; 3] = random.normals(0.0, 0.7);
        let gamma: [f64; 3] = random.normals(0.0, 0.7);
        let parameters = [alpha, beta, gamma].concat();
        Dataset::of(n, parameters, |_| {
            let x: [f64; 2] = random.covariates();
            let log_odds = |k: usize| alpha[k] + beta[k] * x[0] + gamma[k] * x[1];
            let y = random.categorical_logit(&[0.0, log_odds(0), log_odds(1), log_odds(2)]);
            vec![y, x[0], x[1]]
        })
    },
    is_true: true,
};

const HURDLE: Subject = Subject {
    name: "hurdle",
    program: "
        record { real<lower=0, upper=1000000> y; vector<lower=-3, upper=3>[2] x; }
        transformed record { int any = y > 0; real log_y = log(fmax(y, 0.001)); }
        parameters {
          real alpha; vector[2] beta;
          real gamma; vector[2] delta; real<lower=0> sigma;
        }
        model {
          alpha ~ normal(0, 1);
          beta ~ normal(0, 0.5);
          gamma ~ normal(2, 1);
          delta ~ normal(0, 0.5);
          sigma ~ lognormal(-0.5, 0.5);
          target += any
            ? bernoulli_logit_lpmf(1 | alpha + dot_product(x, beta))
                + normal_lpdf(log_y | gamma + dot_product(x, delta), sigma)
            : bernoulli_logit_lpmf(0 | alpha + dot_product(x, beta));
        }",
    make: |random, n| {
        let alpha = random.normal(0.0, 1.0);
        let beta: [f64; 2] = random.normals(0.0, 0.5);
        let gamma = random.normal(2.0, 1.0);
        let delta: [f64; 2] = random.normals(0.0, 0.5);
        let sigma = random.lognormal(-0.5, 0.5);
        let parameters = [&[alpha][..], &beta, &[gamma], &delta, &[sigma]].concat();
        Dataset::of(n, parameters, |_| {
            let x: [f64; 2] = random.covariates();
            let any = random.bernoulli_logit(alpha + dot(&x, &beta));
            let y = any * random.lognormal(gamma + dot(&x, &delta), sigma);
            [&[y][..], &x].concat()
        })
    },
    is_true: true,
};

const SURVIVAL: Subject = Subject {
    name: "survival",
    program: "
        record {
          real<lower=0, upper=5> t;
          int<lower=0, upper=1> died;
          vector<lower=-3, upper=3>[2] x;
        }
        parameters { real alpha; vector[2] beta; }
        model {
          real rate = exp(alpha + dot_product(x, beta));
          alpha ~ normal(-0.5, 0.7);
          beta ~ normal(0, 0.5);
          target += died ? exponential_lpdf(t | rate) : exponential_lccdf(t | rate);
        }",
    make: |random, n| {
        let alpha = random.normal(-0.5, 0.7);
        let beta: [f64; 2] = random.normals(0.0, 0.5);
        let parameters = [&[alpha][..], &beta].concat();
        Dataset::of(n, parameters, |_| {
            let x: [f64; 2] = random.covariates();
            let time = random.exponential((alpha + dot(&x, &beta)).exp());
            let seen = random.uniform(1.0, 5.0);
            let died = f64::from(u8::from(time <= seen));
            [&[time.min(seen), died][..], &x].concat()
        })
    },
    is_true: true,
};

pub const NORMAL: Subject = Subject {
    name: "normal",
    program: "
        record { real<lower=-100, upper=100> y; }
        parameters { real mu; real<lower=0> sigma; }
        model { mu ~ normal(0, 5); sigma ~ lognormal(0, 0.7); y ~ normal(mu, sigma); }",
    make: |random, n| {
        let mu = random.normal(0.0, 5.0);
        let sigma = random.lognormal(0.0, 0.7);
        Dataset::of(n, vec![mu, sigma], |_| vec![random.normal(mu, sigma)])
    },
    is_true: true,
};

const GROUPS: Subject = Subject {
    name: "groups",
    program: "
        record { real<lower=-100, upper=100> y; int<lower=1, upper=9> group; }
        parameters { real mu; real<lower=0> tau; vector[9] raw; real<lower=0> sigma; }
        model {
          mu ~ normal(0, 2);
          tau ~ lognormal(-0.5, 0.5);
          raw ~ normal(0, 1);
          sigma ~ lognormal(0, 0.5);
          y ~ normal(mu + tau * raw[group], sigma);
        }",
    make: |random, n| {
        let mu = random.normal(0.0, 2.0);
        let tau = random.lognormal(-0.5, 0.5);
        let raw: [f64; 9] = random.normals(0.0, 1.0);
        let sigma = random.lognormal(0.0, 0.5);
        let parameters = [&[mu, tau][..], &raw, &[sigma]].concat();
        Dataset::of(n, parameters, |i| {
            let group = i % raw.len();
            let y = random.normal(mu + tau * raw[group], sigma);
            vec![y, (group + 1) as f64]
        })
    },
    is_true: true,
};

pub const SUBJECTS: [&Subject; 11] = [
    &LOGISTIC,
    &POISSON,
    &NEGATIVE_BINOMIAL,
    &ORDERED,
    &STUDENT_T,
    &LOGNORMAL,
    &SOFTMAX,
    &HURDLE,
    &SURVIVAL,
    &NORMAL,
    &GROUPS,
];
