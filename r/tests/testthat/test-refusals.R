WRONG <- "record { real<lower=0, upper=1> y; }
parameters { real a; }
model {
  a ~ normal(y, 1);
}
"

test_that("a wrong model is shown with carets", {
  skip_without_program()
  calls <- list(dpm_check, function(m) dpm_sample(m, data.frame(y = 1), epsilon = 1),
                function(m) dpm_plan(m, rows = 9, epsilon = 1))
  for (call in calls) {
    caught <- expect_error(call(WRONG), "error[E0201]", fixed = TRUE, class = "dpm_model_error")
    expect_match(conditionMessage(caught), "--> model.dpm:4:14", fixed = TRUE)
    expect_identical(caught$diagnostics[[1]]$line, 4L)
    expect_s3_class(caught, "dpm_input_error")
  }
})

test_that("wrong settings are refused", {
  skip_without_program()
  rows <- list(y = rep(0:1, 50))
  refused <- function(message, ..., fixed = FALSE) {
    caught <- expect_error(dpm_sample(COIN, rows, ...), message, fixed = fixed, class = "dpm_input_error")
    expect_identical(caught$code, 2)
  }
  refused("`epsilon = 1, delta = 1e-6`; or `algorithm = \"hmc\", not_private = TRUE`", fixed = TRUE)
  refused("epsilon", epsilon = -1)
  refused("unexpected argument 'bogus' found", epsilon = 1, bogus = 3)
  refused("dp-nothing", epsilon = 1, algorithm = "dp-nothing")
  refused("add not_private if", epsilon = 1, algorithm = "nuts")
  refused("nosuch.ledger", epsilon = 1, ledger = "nosuch.ledger")
  refused("household", epsilon = 1, unit = "household")
  refused("expected a number", epsilon = NA)
  expect_error(dpm_sample(MODEL, rows, epsilon = 1, constants = list(scale = 1)), "centre", class = "dpm_input_error")
  expect_error(dpm_sample(MODEL, rows, epsilon = 1, constants = list(scale = NaN)), "finite", class = "dpm_input_error")
  expect_error(dpm_sample("nosuch.dpm", rows, epsilon = 1), "nosuch.dpm", class = "dpm_input_error")
})

test_that("refusals speak of arguments and the table", {
  skip_without_program()
  refused <- function(rows, message) {
    expect_error(dpm_sample(COIN, rows, epsilon = 1), message, fixed = TRUE, class = "dpm_input_error")
  }
  refused(list(z = 1:3), "the table has no column named `y`")
  refused(list(z = 1:3), "say with `columns` which")
  refused(list(y = 2), "use `on_bad_rows = \"skip\"`")
})

test_that("no refusal shows a value of the table", {
  skip_without_program()
  secret <- "secret-4711"
  try_with <- function(rows, message) {
    caught <- expect_error(do.call(dpm_sample, list(COIN, rows, epsilon = 1, delta = 1e-6)), message,
                           class = "dpm_input_error")
    expect_null(conditionCall(caught))
    expect_false(grepl(secret, paste(capture.output(print(caught)), collapse = ""), fixed = TRUE))
  }
  try_with(data.frame(y = rep(secret, 100)), "line 2")
  # The program says so at once, and closes the pipe that much is still to go through.
  try_with(data.frame(y = rep(secret, 3e5), more = strrep("a", 100)), "line 2")
  try_with(data.frame(z = rep(secret, 3e5), more = strrep("a", 100)), "`y`")
  try_with(data.frame(y = as.Date("2026-01-01") + 1:9), "`y`")
  try_with(data.frame(y = as.Date("2026-01-01") + 1:9), "not handed over.*`y`")
  try_with(list(y = 1:3, z = 1:2), "differ in length")
  try_with(list(1:3), "names")
  try_with(matrix(1:4), "expected a data frame")
  try_with(structure(list(src = 1), class = c("tbl_lazy", "list")), "collect")
})

test_that("a table that fails on the way is not sampled, and its error is not shown", {
  skip_without_program()
  setClass("Leaky", contains = "numeric")
  setMethod("[", "Leaky", function(x, i, ...) if (1 %in% i) x@.Data[i] else stop("secret-4711"))
  rows <- list(y = new("Leaky", rep(c(0, 1), 10000)))
  caught <- expect_error(dpm_sample(COIN, rows, epsilon = 1, delta = 1e-6), "cannot be read", class = "dpm_input_error")
  expect_false(grepl("4711", conditionMessage(caught)))
})

test_that("a ledger adds up and refuses", {
  skip_without_program()
  path <- tempfile(fileext = ".ledger")
  ledger <- dpm_ledger_create(path, epsilon = 1.2, delta = 1e-6)
  expect_s3_class(ledger, "dpm_ledger")
  rows <- list(y = rep(0:1, 500))
  fit <- suppressWarnings(dpm_sample(COIN, rows, epsilon = 1, delta = 1e-6, ledger = ledger, num_samples = 20))
  expect_equal(dpm_ledger_show(ledger)$spent, 1, tolerance = 1e-6)
  expect_output(print(ledger), "completed")
  for (refused in list(function() dpm_sample(COIN, rows, epsilon = 1, delta = 1e-6, ledger = path),
                       function() dpm_plan(COIN, rows = 1000, epsilon = 1, delta = 1e-6, ledger = ledger))) {
    caught <- expect_error(refused(), "the budget refuses", class = "dpm_budget_exceeded")
    expect_equal(caught$spent, 1, tolerance = 1e-5)
    expect_equal(caught$remaining, 0.2, tolerance = 1e-5)
    expect_gt(caught$requested, 0.2)
    expect_identical(caught$code, 3)
  }
  expect_match(dpm_ledger_verify(ledger, against = fit), "holds")
  expect_error(dpm_ledger_create(path, epsilon = 1, delta = 1e-6), "exists", class = "dpm_error")
  cat('{"forged":1}\n', file = path, append = TRUE)
  expect_error(dpm_ledger_verify(ledger), class = "dpm_error")
})

test_that("an interrupted run is resumed, with the same draws", {
  skip_without_program()
  skip_on_os("windows")
  skip_on_cran()
  rows <- list(y = rep(0:1, 20000))
  settings <- list(epsilon = 1, delta = 1e-6, algorithm = "dp-hmc", num_samples = 2000, num_warmup = 500,
                   threads = 1, no_report = TRUE, insecure_noise_seed = 3, chains = 1)
  out <- tempfile("dpm-")
  # SIGINT to this process, as Ctrl-C sends it, from another one.
  killer <- processx::process$new("sh", c("-c", 'while ! [ -e "$0"/unfinished/chain-1.even ]; do sleep 0.1; done; kill -INT "$1"',
                                          out, Sys.getpid()))
  caught <- tryCatch(
    suppressWarnings(do.call(dpm_sample, c(list(COIN, rows, out = out), settings))),
    dpm_interrupted = function(e) e
  )
  killer$kill()
  expect_s3_class(caught, "dpm_interrupted")
  expect_identical(normalizePath(caught$directory), normalizePath(out))
  fit <- suppressWarnings(dpm_resume(out, rows))
  expect_identical(dim(fit$draws())[1], 2000L)
})

test_that("plans, answers and settings", {
  skip_without_program()
  plan <- dpm_plan(COIN, rows = 3000, epsilon = 1, delta = 1e-6)
  expect_lte(plan$epsilon, 1)
  expect_output(print(plan), "epsilon 1.000000 at delta 1e-6")
  expect_output(print(dpm_check(COIN)), "sensitivity")
  steps <- list()
  tuned <- dpm_tune(COIN, rows = 3000, epsilon = 1, delta = 1e-6, tries = 2, points = 1, records = 50,
                    progress = function(step) steps[[length(steps) + 1]] <<- step)
  expect_identical(steps[[2]], list(stage = "settings", done = 2L, total = 2L, unit = "settings"))
  expect_true(is.list(tuned$settings))
  do.call(dpm_plan, c(list(COIN, rows = 3000, epsilon = 1, delta = 1e-6), tuned$settings))
})

test_that("the program is found, and has this package's version", {
  skip_without_program()
  expect_identical(dpm_version(), as.character(utils::packageVersion("dpmbayes")))
  before <- options(dpm.program = "/nosuch/dpm")
  on.exit(options(before))
  expect_error(dpm_program(), "cannot run `/nosuch/dpm`", class = "dpm_error")
  options(dpm.program = Sys.which("true")[[1]])
  expect_error(dpm_program(), "no dpm|install both", class = "dpm_error")
})
