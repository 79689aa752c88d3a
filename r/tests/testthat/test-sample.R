test_that("a data frame gives the draws of the command line", {
  skip_without_program()
  rows <- some_rows()
  folder <- tempfile()
  dir.create(folder)
  model <- file.path(folder, "m.dpm")
  writeLines(MODEL, model)
  writeLines('{"scale": 3.3333333333333335, "centre": [0.1, -0.33333333333333331]}', file.path(folder, "c.json"))
  done <- processx::run(dpm_program(), c(
    "sample", model, as_file(rows), "--constants", file.path(folder, "c.json"), "--out", file.path(folder, "run"),
    "--epsilon=1", "--delta=1e-6", "--num-samples=20", "--insecure-noise-seed=3", "--threads=1", "--seed=5", "--quiet"
  ))
  theirs <- lines_of(file.path(folder, "run"))
  expect_length(theirs, 4)

  fit <- draw(model, rows, constants = CONSTANTS, seed = 5)
  expect_identical(lines_of(fit$directory), theirs)
  columns <- list(y = as.integer(rows$y), x = rows$x, region = as.character(rows$region))
  expect_identical(lines_of(draw(MODEL, columns, constants = CONSTANTS, seed = 5)$directory), theirs)
  expect_identical(lines_of(draw(model, as_file(rows), constants = CONSTANTS, seed = 5)$directory), theirs)
  expect_false(identical(lines_of(draw(model, rows, constants = CONSTANTS, seed = 6)$directory), theirs))
})

test_that("several paths are one table, and a matrix is columns", {
  skip_without_program()
  rows <- some_rows()
  halves <- c(as_file(rows[1:280, ]), as_file(rows[281:560, ]))
  whole <- draw(MODEL, rows, constants = CONSTANTS)
  expect_identical(lines_of(draw(MODEL, halves, constants = CONSTANTS)$directory), lines_of(whole$directory))
  model <- sub("y;", "y;\n  vector<lower=-1, upper=1>[2] x;", COIN)
  model <- sub("logit(a)", "logit(a * x[1] - a * x[2])", model, fixed = TRUE)
  y <- rep(0:1, 50)
  x <- matrix(seq(-1, 1, length.out = 200), ncol = 2)
  flat <- draw(model, list(y = y, x.1 = x[, 1], x.2 = x[, 2]))
  for (table in list(list(y = y, x = x), data.frame(y = y, x = I(x)), list(y = y, u = x[, 1], `v,w` = x[, 2]))) {
    columns <- if ("u" %in% names(table)) list(x = c("u", "v,w"))
    expect_identical(draw(model, table, columns = columns)$draws(), flat$draws())
  }
})

test_that("a large table passes through the pipe", {
  skip_without_program()
  rows <- data.frame(y = rep(c(TRUE, FALSE, TRUE), 50000), text = strrep("a", 100))
  fit <- draw(COIN, rows)
  expect_identical(fit$draws(), draw(COIN, list(y = rows$y))$draws())
  # Logistic of a is two thirds, as closely as the noise has it.
  expect_lt(abs(mean(plogis(fit$draws()[, , "a"])) - 2 / 3), 0.02)
})

test_that("a fit has what a run has", {
  skip_without_program()
  fit <- draw(MODEL, some_rows(), constants = CONSTANTS)
  draws <- fit$draws()
  expect_s3_class(draws, "draws_array")
  expect_identical(posterior::variables(draws), c("a", "beta[1]", "beta[2]"))
  expect_identical(dim(draws), c(20L, 4L, 3L))
  expect_identical(posterior::as_draws(fit), draws)
  ours <- read.csv(file.path(fit$directory, "summary.csv"), check.names = FALSE)
  summary <- suppressWarnings(fit$summary())
  expect_equal(as.numeric(summary$mean), ours$mean, tolerance = 1e-9)
  expect_equal(as.numeric(summary$sd), ours$sd, tolerance = 1e-9)
  # What it is depends on the draws.
  decision <- suppressWarnings(fit$decision())
  said <- c(use = "can be used\\.", use_with_care = "with\\s+care\\.", do_not_use = "Do not use")[[decision]]
  expect_output(print(summary), paste0("^verdict: [^.]*", said))
  expect_output(print(fit), paste0("^verdict: [^.]*", said, ".*NOT PRIVATE.*beta\\[2\\]"))
  expect_identical(summary(fit, "median")$variable, summary$variable)
  expect_identical(fit$ok(), decision != "do_not_use")
  expect_true("convergence" %in% fit$verdicts()$code)
  expect_false(fit$privacy()$private)
  expect_identical(fit$config()$chains, 4L)
  expect_true("accept_stat__" %in% posterior::variables(fit$sampler_diagnostics()))
  expect_true(file.exists(suppressWarnings(fit$report(open = FALSE))))
  again <- dpm_fit(fit$directory)
  expect_identical(again$draws(), draws)
  expect_error(dpm_fit(tempdir()), "privacy.json", class = "dpm_input_error")
})

test_that("what the program insists on is a warning", {
  skip_without_program()
  said <- character()
  withCallingHandlers(
    dpm_sample(COIN, list(y = rep(0:1, 50)), epsilon = 1, delta = 1e-6, num_samples = 2, insecure_noise_seed = 1),
    dpm_warning = function(w) {
      said <<- c(said, conditionMessage(w))
      invokeRestart("muffleWarning")
    }
  )
  expect_match(said[1], "NOT PRIVATE")
  expect_match(said[2], "Do not use")
})

test_that("predictions are for public rows", {
  skip_without_program()
  model <- paste0("constants { int N_new; vector[N_new] x_new; }\n", COIN,
                  "generated quantities {\n  array[N_new] int y_new = bernoulli_logit_rng(a + x_new);\n}\n")
  fit <- draw(model, list(y = rep(0:1, 50)), constants = list(N_new = 0, x_new = numeric()))
  quiet <- function(x) suppressWarnings(x, classes = "dpm_warning")
  found <- quiet(fit$generate(data = data.frame(x_new = c(-50, 50))))
  expect_equal(as.vector(found[, , "y_new[1]"]), rep(0, 80))
  expect_equal(as.vector(found[, , "y_new[2]"]), rep(1, 80))
  expect_identical(quiet(dpm_generate(model, fit, constants = list(N_new = 2, x_new = c(-50, 50)))), found)
})

test_that("progress is a bar, or a function's", {
  skip_without_program()
  rows <- list(y = rep(0:1, 50))
  steps <- list()
  draw(COIN, rows, chains = 2, num_warmup = 10, progress = function(step) steps[[length(steps) + 1]] <<- step)
  counts <- function(stage) unlist(lapply(steps, function(step) if (step$stage == stage) step$done))
  expect_identical(counts("sampling"), 1:60)
  expect_identical(counts("learning"), 0:max(counts("learning")))
  expect_identical(names(steps[[1]]), c("stage", "done", "total", "unit"))

  said <- capture.output(draw(COIN, rows, progress = TRUE), type = "message")
  expect_true(any(grepl("dp-laplace: 4 chains", said)))
  expect_true(any(grepl("100%", said)))
  expect_false(any(grepl('{"stage"', said, fixed = TRUE)))
  expect_identical(capture.output(draw(COIN, rows, progress = FALSE), type = "message"), character())
})

test_that("an error in a function stops the run, which can be resumed", {
  skip_without_program()
  skip_on_os("windows")
  rows <- list(y = rep(0:1, 500))
  out <- tempfile("dpm-")
  stops <- function(step) if (step$done >= 30) stop("enough")
  settings <- list(COIN, rows, algorithm = "dp-hmc", chains = 1, num_warmup = 10, num_samples = 2000, out = out)
  expect_error(do.call(draw, c(settings, progress = stops)), "enough")
  fit <- suppressWarnings(dpm_resume(out, rows))
  expect_identical(dim(fit$draws())[1], 2000L)
})
