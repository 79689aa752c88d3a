//! Tables and models that something is wrong with. What should come out is the posterior without
//! privacy, or a verdict that the draws are not to be used.

use crate::random::dot;
use crate::subjects::{Dataset, LOGISTIC, LOGNORMAL, NORMAL, SOFTMAX, Subject};

/// Two parameters of which the records see the sum alone.
const FLAT: Subject = Subject {
    name: "trap: flat direction",
    program: "
        record { int<lower=0, upper=1> y; real<lower=-3, upper=3> x; }
        parameters { real a; real b; real beta; }
        model {
          a ~ normal(0, 1);
          b ~ normal(0, 1);
          beta ~ normal(0, 1);
          y ~ bernoulli_logit(a + b + beta * x);
        }",
    make: |random, n| {
        Dataset::of(n, vec![0.25, 0.25, 0.7], |_| {
            let x = random.normal(0.0, 1.0).clamp(-3.0, 3.0);
            vec![random.bernoulli_logit(0.5 + 0.7 * x), x]
        })
    },
    is_true: false,
};

/// A class that five records have.
const RARE_CLASS: Subject = Subject {
    name: "trap: rare class",
    make: |random, n| {
        let rare = (5.0 / n as f64).ln();
        let parameters = [&[0.5, -0.5, rare][..], &[0.5, -0.3, 0.0], &[0.0; 3]].concat();
        Dataset::of(n, parameters, |i| {
            let x: [f64; 2] = random.covariates();
            let y = if i < 5 {
                4.0
            } else {
                random.categorical_logit(&[0.0, 0.5 + 0.5 * x[0], -0.5 - 0.3 * x[0]])
            };
            vec![y, x[0], x[1]]
        })
    },
    is_true: false,
    ..SOFTMAX
};

/// A covariate of one record is 1,000,000, its outcome as the others would have it.
const OUTLIER: Subject = Subject {
    name: "trap: outlier",
    program: "
        record { int<lower=0, upper=1> y; vector[2] x; }
        parameters { real alpha; vector[2] beta; }
        model {
          alpha ~ normal(0, 1);
          beta ~ normal(0, 0.7);
          y ~ bernoulli_logit(alpha + dot_product(x, beta));
        }",
    make: |random, n| {
        Dataset::of(n, vec![-0.5, 0.5, -0.5], |i| {
            let mut x: [f64; 2] = random.normals(0.0, 1.0);
            if i == 0 {
                x[0] = 1e6;
            }
            vec![
                random.bernoulli_logit(-0.5 + 0.5 * x[0] - 0.5 * x[1]),
                x[0],
                x[1],
            ]
        })
    },
    is_true: false,
};

/// The mean is 50 of the prior's standard deviations from its middle.
const PRIOR: Subject = Subject {
    name: "trap: prior",
    program: "
        record { real<lower=-100, upper=100> y; }
        parameters { real mu; real<lower=0> sigma; }
        model { mu ~ normal(0, 1); sigma ~ lognormal(0, 0.7); y ~ normal(mu, sigma); }",
    make: |random, n| Dataset::of(n, vec![50.0, 2.0], |_| vec![random.normal(50.0, 2.0)]),
    is_true: false,
};

/// Counts with seven times the variance of the model's Poisson numbers.
const OVERDISPERSED: Subject = Subject {
    name: "trap: overdispersed",
    program: "
        record { int<lower=0, upper=200> y; vector<lower=-3, upper=3>[3] x; }
        parameters { real alpha; vector[3] beta; }
        model {
          alpha ~ normal(0, 0.7);
          beta ~ normal(0, 0.3);
          y ~ poisson_log(alpha + dot_product(x, beta));
        }",
    make: |random, n| {
        let (alpha, beta) = (0.7, [0.3, -0.2, 0.3]);
        Dataset::of(n, [&[alpha][..], &beta].concat(), |_| {
            let x: [f64; 3] = random.covariates();
            let mean = (alpha + dot(&x, &beta)).exp();
            // A gamma mixture: the variance is mean (1 + 6).
            let rate = random.gamma(mean / 6.0, 1.0 / 6.0).max(1e-9);
            [&[random.poisson(rate).min(200.0)][..], &x].concat()
        })
    },
    is_true: false,
};

/// Lognormal numbers of which one in twenty is smaller by a factor with an exponential law.
const LEFT_TAIL: Subject = Subject {
    name: "trap: left tail",
    make: |random, n| {
        let (alpha, beta) = (2.0, [0.4, -0.3]);
        Dataset::of(n, vec![alpha, beta[0], beta[1], 1.0], |_| {
            let x: [f64; 2] = random.covariates();
            let tail = random.bernoulli(0.05) * random.exponential(0.3);
            let y = (random.normal(alpha + dot(&x, &beta), 0.4) - tail).exp();
            [&[y][..], &x].concat()
        })
    },
    is_true: false,
    ..LOGNORMAL
};

/// A Cauchy link where the model has a logistic one.
const LINK: Subject = Subject {
    name: "trap: link",
    make: |random, n| {
        let (alpha, beta) = (0.5, [1.5, -1.0, 0.8, 0.5]);
        let near = [&[alpha][..], &beta].concat();
        Dataset::of(n, near.iter().map(|b| 0.7 * b).collect(), |_| {
            let x: [f64; 4] = random.covariates();
            let eta: f64 = alpha + dot(&x, &beta);
            let y = random.bernoulli(0.5 + eta.atan() / std::f64::consts::PI);
            [&[y][..], &x].concat()
        })
    },
    is_true: false,
    ..LOGISTIC
};

/// Bounds within a standard deviation of the outcome and of the covariate.
const BOUNDS: Subject = Subject {
    name: "trap: bounds",
    program: "
        record { real<lower=-1, upper=1> y; real<lower=-1, upper=1> x; }
        parameters { real alpha; real beta; real<lower=0> sigma; }
        model {
          alpha ~ normal(0, 2);
          beta ~ normal(0, 1);
          sigma ~ lognormal(0, 0.7);
          y ~ normal(alpha + beta * x, sigma);
        }",
    make: |random, n| {
        Dataset::of(n, vec![0.3, 0.4, 0.7], |_| {
            let x = random.normal(0.0, 2.0);
            vec![random.normal(1.0 + x, 1.0), x]
        })
    },
    is_true: false,
};

/// As many coordinates as the information of 2,000 records hardly has room for beside its noise.
const MANY: Subject = Subject {
    name: "trap: 50 parameters",
    program: "
        record { int<lower=0, upper=1> y; vector<lower=-3, upper=3>[49] x; }
        parameters { real alpha; vector[49] beta; }
        model {
          alpha ~ normal(0, 1);
          beta ~ normal(0, 0.5);
          y ~ bernoulli_logit(alpha + dot_product(x, beta));
        }",
    make: |random, n| {
        let beta: [f64; 49] = random.normals(0.0, 0.3);
        Dataset::of(n, [&[0.3][..], &beta].concat(), |_| {
            let x: [f64; 49] = random.covariates();
            [&[random.bernoulli_logit(0.3 + dot(&x, &beta))][..], &x].concat()
        })
    },
    is_true: false,
};

/// Records that agree to a thousandth, eight of the prior's standard deviations from its middle.
const FAR: Subject = Subject {
    name: "trap: far",
    make: |random, n| Dataset::of(n, vec![40.0, 0.05], |_| vec![random.normal(40.0, 0.05)]),
    is_true: false,
    ..NORMAL
};

pub const TRAPS: [&Subject; 10] = [
    &FLAT,
    &RARE_CLASS,
    &OUTLIER,
    &PRIOR,
    &OVERDISPERSED,
    &LEFT_TAIL,
    &LINK,
    &BOUNDS,
    &MANY,
    &FAR,
];
