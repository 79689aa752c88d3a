quiet <- function(x) suppressWarnings(x, classes = "dpm_warning")

test_that("a model is described and formatted", {
  skip_without_program()
  info <- dpm_info(MODEL, constants = CONSTANTS)
  expect_identical(vapply(info$record, function(column) column$name, ""), c("y", "x", "region"))
  expect_output(print(info), "\"north\"", fixed = TRUE)
  expect_identical(dpm_fmt(COIN), COIN)
  path <- tempfile(fileext = ".dpm")
  wide <- gsub("  ", "\t", COIN, fixed = TRUE)
  writeLines(wide, path, sep = "")
  expect_identical(dpm_fmt(path), COIN)
  expect_identical(readChar(path, file.size(path)), wide)
  expect_error(dpm_fmt("record {\n"), class = "dpm_input_error")
  expect_error(dpm_fmt("nosuch.dpm"), "nosuch.dpm", class = "dpm_input_error")
})

test_that("log densities are exact, and say so", {
  skip_without_program()
  points <- list(list(params = list(a = 0)), list(params = list(a = 1 / 3)))
  rows <- data.frame(y = c(1, 1, 0, 1), when = as.Date("2026-01-01"))
  expect_error(dpm_log_prob(COIN, rows, points), "not_private", class = "dpm_input_error")
  expect_warning(dpm_log_prob(COIN, rows, points, not_private = TRUE), "NOT PRIVATE", class = "dpm_warning")
  found <- quiet(dpm_log_prob(COIN, rows, points, not_private = TRUE))
  expect_length(found, 2)
  a <- 1 / 3
  expect_equal(found[[2]]$gradient, sum(rows$y - plogis(a)) - a / 4, tolerance = 1e-12)
  expect_error(dpm_log_prob(COIN, data.frame(y = as.Date("2026-01-01")), points, not_private = TRUE),
               "not handed over.*`y`", class = "dpm_input_error")
})

test_that("releases are accounted for and calibrated", {
  skip_without_program()
  event <- "gaussian:sensitivity=1,sigma=20,count=100"
  # Balle and Wang (2018): delta at epsilon of noise of 2 sensitivities.
  mu <- 1 / 2
  delta <- function(epsilon) pnorm(mu / 2 - epsilon / mu) - exp(epsilon) * pnorm(-mu / 2 - epsilon / mu)
  found <- dpm_account(event, relation = "substitute", delta = 1e-6)
  expect_equal(delta(found$epsilon), 1e-6, tolerance = 1e-6)
  several <- dpm_account(c(event, event), relation = "substitute", delta = c(1e-5, 1e-6))
  expect_length(several, 2)
  expect_gt(several[[2]]$epsilon, found$epsilon)
  calibrated <- dpm_calibrate("gaussian:sensitivity=1,count=100", relation = "substitute", epsilon = found$epsilon,
                              delta = 1e-6)
  expect_equal(calibrated$sigma, 20, tolerance = 1e-6)
  count <- dpm_calibrate(event, relation = "substitute", epsilon = found$epsilon + 1e-6, delta = 1e-6, find = "count")
  expect_identical(count$count, 1L)
  file <- tempfile()
  writeLines(c(event, "# and so on"), file)
  expect_identical(dpm_account(events = file, relation = "substitute", delta = 1e-6)$epsilon, found$epsilon)
  expect_error(dpm_account("nothing:at=1", relation = "substitute", delta = 1e-6), class = "dpm_input_error")
})

test_that("runs are compared and converted", {
  skip_without_program()
  fit <- draw(COIN, list(y = rep(0:1, 50)))
  same <- quiet(dpm_compare(fit, fit))
  expect_identical(c(same$parameters[[1]]$mean_error, same$parameters[[1]]$sd_ratio), c(0, 1))
  draws <- as.vector(fit$draws()[, , "a"])
  wider <- tempfile(fileext = ".csv")
  utils::write.csv(data.frame(a = 2 * draws + 1), wider, row.names = FALSE)
  found <- quiet(dpm_compare(fit, wider))$parameters[[1]]
  expect_equal(found$sd_ratio, 0.5)
  expect_equal(found$mean_error, -(mean(draws) + 1) / sd(2 * draws))
  csv <- quiet(dpm_convert(fit, "csv"))
  expect_identical(csv, paste0(fit$directory, ".csv"))
  table <- utils::read.csv(csv)
  expect_equal(table$a, draws)
  expect_error(quiet(dpm_convert(fit, "csv")), "overwrite", class = "dpm_error")
  expect_identical(quiet(dpm_convert(fit, "csv", overwrite = TRUE)), csv)
})

test_that("a ledger goes on without its head", {
  skip_without_program()
  ledger <- dpm_ledger_create(tempfile(fileext = ".ledger"), epsilon = 1, delta = 1e-6)
  unlink(paste0(ledger$path, ".head"))
  expect_error(dpm_ledger_verify(ledger), class = "dpm_error")
  expect_identical(dpm_ledger_adopt(ledger), ledger)
  expect_match(dpm_ledger_verify(ledger), "holds")
})

test_that("runs are judged by records that were held out", {
  skip_without_program()
  data <- list(y = rep(0:1, 200))
  fit <- draw(COIN, data, hold_out = 0.5)
  scores <- quiet(dpm_score(fit, data, epsilon = 5, delta = 1e-6, insecure_noise_seed = 1))
  found <- scores$log_predictive_density
  # No prediction of a fair coin is better than 1/2; the noise here is below 0.1.
  expect_lt(found$mean, log(0.5) + 0.3)
  expect_lt(found$interval_90[[1]], found$mean)
  expect_identical(scores$hold_out, 0.5)
  checked <- quiet(dpm_score(fit, data, epsilon = 5, delta = 1e-6, statistic = "y == 1", insecure_noise_seed = 1))
  expect_lt(abs(checked$statistics[[1]]$observed - 0.5), 0.3)
  expect_error(quiet(dpm_score(fit, data, epsilon = 1e-3, delta = 1e-6)), "drown", class = "dpm_input_error")
  expect_error(quiet(dpm_score(draw(COIN, data), data, epsilon = 1)), "held out none", class = "dpm_input_error")
})

test_that("models and tables are made up", {
  skip_without_program()
  book <- list(columns = list(y = list(type = "boolean"), x = list(type = "float", lower = -2, upper = 2)))
  model <- dpm_new(y ~ x, "bernoulli", book)
  expect_match(model, "b_x")
  expect_error(dpm_new("y ~ z", "bernoulli", book), "z", class = "dpm_input_error")
  csv <- tempfile(fileext = ".csv")
  found <- dpm_simulate(model, rows = 50, out = csv)
  expect_identical(nrow(utils::read.csv(csv)), 50L)
  expect_true(length(found$outcomes) > 0)
  judged <- quiet(dpm_sbc(COIN, rows = 50, tables = 4, algorithm = "nuts", not_private = TRUE, no_reference = TRUE))
  expect_true(length(judged) > 0)
  synthetic <- tempfile(fileext = ".csv")
  expect_true(length(quiet(dpm_synth(draw(COIN, list(y = rep(0:1, 50))), rows = 20, out = synthetic))) > 0)
  expect_identical(nrow(utils::read.csv(synthetic)), 20L)
  estimates <- tempfile(fileext = ".csv")
  writeLines(c("estimate,variance", "1.0,0.5", "1.2,0.4", "0.9,0.6"), estimates)
  expect_match(jsonlite::toJSON(unclass(dpm_pool(estimates, rule = "partial")), digits = NA), "1.033")
})
