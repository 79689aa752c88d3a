# What the tests share: a model, its table as a file, and one way of running both.

skip_without_program <- function() {
  if (inherits(try(dpm_program(), silent = TRUE), "try-error")) skip("the program dpm is not there")
}

MODEL <- "constants {
  real scale;
  vector[2] centre;
}
record {
  int<lower=0, upper=1> y;
  real<lower=-5, upper=5> x;
  factor(\"north\", \"the south, too\") region;
}
parameters {
  real a;
  vector[2] beta;
}
model {
  a ~ normal(0, scale);
  beta ~ normal(centre, 2);
  y ~ bernoulli_logit(a + beta[1] * x + beta[2] * (region - 1));
}
"
CONSTANTS <- list(scale = 10 / 3, centre = c(0.1, -1 / 3))

COIN <- "record {
  int<lower=0, upper=1> y;
}
parameters {
  real a;
}
model {
  a ~ normal(0, 2);
  y ~ bernoulli_logit(a);
}
"

extreme <- c(1e-320, 4.9406564584124654e-324, 1e308, -1e308, Inf, -Inf, NaN, NA, 0.1, 1 / 3, 2 / 3, pi, -0, 1e22)

some_rows <- function(n = 560) {
  place <- (seq_len(n) * 7) %% 11
  data.frame(
    y = ifelse(place == 3, NA, place > 4),
    x = rep_len(extreme, n),
    region = factor(ifelse(place == 9, NA, c("north", "the south, too")[1 + place %% 2])),
    when = as.Date("2026-01-01"),
    note = "a, \"quoted\"\nnote"
  )
}

# The same table as another program would write it: every number by hand.
as_file <- function(rows) {
  path <- tempfile(fileext = ".csv")
  x <- rep_len(c("1e-320", "5e-324", "1e308", "-1e308", "Inf", "-Inf", "", "", "0.1", "0.33333333333333331",
                 "0.66666666666666663", "3.1415926535897931", "-0", "1e22"), nrow(rows))
  region <- c("north", "\"the south, too\"")[as.integer(rows$region)]
  region[is.na(region)] <- ""
  y <- ifelse(is.na(rows$y), "", ifelse(rows$y, "1", "0"))
  writeLines(c("y,x,region", paste(y, x, region, sep = ",")), path)
  path
}

# Noise from a seed, so that runs can be compared to the bit.
draw <- function(model, data, ..., num_samples = 20, insecure_noise_seed = 3) {
  suppressWarnings(dpm_sample(model, data, epsilon = 1, delta = 1e-6, num_samples = num_samples, no_report = TRUE,
                              threads = 1, insecure_noise_seed = insecure_noise_seed, ...), classes = "dpm_warning")
}

lines_of <- function(directory) {
  lapply(list.files(directory, "^chain-", full.names = TRUE), function(file) {
    grep("^#", readLines(file), invert = TRUE, value = TRUE)
  })
}
