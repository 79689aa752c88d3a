# The program's commands as functions. A named argument is the flag of its name, with `_` for `-`;
# those that are not listed are passed on as they are.

dpm_sample <- function(model, data, epsilon = NULL, delta = NULL, relation = NULL, ledger = NULL, unit = NULL,
                       algorithm = NULL, not_private = FALSE, chains = NULL, num_samples = NULL,
                       num_warmup = NULL, constants = NULL, init = NULL, columns = NULL, on_bad_rows = NULL,
                       seed = NULL, threads = NULL, out = NULL, overwrite = FALSE, progress = on_a_terminal(),
                       ...) {
  path <- model_file(model)
  dpm_check(path, constants)
  flags <- as_arguments(c(list(
    epsilon = epsilon, delta = delta, relation = relation, ledger = ledger, unit = unit, algorithm = algorithm,
    not_private = not_private, chains = chains, num_samples = num_samples, num_warmup = num_warmup,
    constants = constants, init = init, columns = columns, on_bad_rows = on_bad_rows, seed = seed,
    threads = threads, overwrite = overwrite
  ), list(...)))
  table <- source_of(data)
  directory <- if (!is.null(out)) path_of(out) else {
    file.path(tempfile("dpm-"), paste0(sub("\\.[^.]*$", "", basename(path)), "-run"))
  }
  if (is.null(out)) dir.create(dirname(directory))
  go(c(flags, paste0("--out=", directory), "--", path, table$paths), table, directory, progress)
}

dpm_resume <- function(run, data = NULL, threads = NULL, progress = on_a_terminal(), ...) {
  directory <- path_of(run)
  table <- if (!is.null(data)) source_of(data)
  flags <- as_arguments(list(threads = threads, ...))
  go(c(flags, paste0("--resume=", directory)), table, directory, progress)
}

go <- function(arguments, table, directory, progress) {
  reporter <- reporter(progress)
  done <- run(c("sample", "--color=never", reporter$flags, arguments), table$feed, reporter)
  if (done$code != 0 || done$interrupted) stop(failure(done, directory, table$omitted))
  if (!reporter$talks) warn(done$err)
  dpm_fit(directory)
}

# What the program says as it runs tells how many records there are, and a notebook would keep it.
on_a_terminal <- function() {
  interactive() && !isTRUE(getOption("rstudio.notebook.executing")) && !isTRUE(getOption("jupyter.in_kernel"))
}

dpm_check <- function(model, constants = NULL, data = NULL, ...) {
  path <- model_file(model)
  table <- if (!is.null(data)) source_of(data)
  flags <- as_arguments(c(list(constants = constants, ...), if (!is.null(table)) list(data = table$paths)))
  ask <- function(format) run(c("check", "--quiet", "--color=never", format, flags, "--", path), table$feed)
  done <- ask("--format=json")
  # JSON comes with exit code 2 as well, if the model is what is wrong.
  found <- if (startsWith(done$out, "{")) read_json(done$out) else list()
  if (done$code == 2 && any(vapply(found$diagnostics, function(d) d$severity == "error", TRUE))) {
    shown <- if (nzchar(done$err)) done else run(c("check", "--color=never", flags, "--", path))
    # Of a model that was given as text, without the folder.
    text <- gsub("[^ ]*dpm-model-[0-9a-f]+/", "", trimws(shown$err))
    stop(problem(text, c("dpm_model_error", "dpm_input_error"), code = 2, diagnostics = found$diagnostics))
  }
  if (done$code != 0 || done$interrupted) stop(failure(done, omitted = table$omitted))
  if (!is.null(table)) warn(done$err)
  structure(found, class = "dpm_answer", command = if (is.null(table)) c("check", "--color=never", flags, "--", path))
}

dpm_plan <- function(model, rows, epsilon = NULL, delta = NULL, ledger = NULL, constants = NULL, ...) {
  without_data("plan", model, list(rows = rows, epsilon = epsilon, delta = delta, ledger = ledger,
                                   constants = constants, ...))
}

dpm_tune <- function(model, rows, epsilon = NULL, delta = NULL, constants = NULL, progress = on_a_terminal(), ...) {
  found <- without_data("tune", model, list(rows = rows, epsilon = epsilon, delta = delta, constants = constants,
                                            simulate = TRUE, ...), progress)
  # Tuning takes too long to be done again as text.
  structure(found, command = NULL)
}

dpm_new <- function(formula, family, metadata) {
  formula <- if (inherits(formula, "formula")) paste(deparse(formula), collapse = " ") else formula
  flags <- as_arguments(list(formula = formula, family = family, metadata = metadata))
  done <- run(c("new", "--quiet", "--color=never", flags))
  if (done$code != 0 || done$interrupted) stop(failure(done))
  done$out
}

dpm_simulate <- function(model, rows, out, constants = NULL, parameters = NULL, ...) {
  structure(without_data("simulate", model, list(rows = rows, out = out, constants = constants,
                                                 parameters = parameters, ...)), command = NULL)
}

dpm_sbc <- function(model, rows, epsilon = NULL, delta = NULL, constants = NULL, out = NULL,
                    progress = on_a_terminal(), ...) {
  path <- model_file(model)
  dpm_check(path, constants)
  place <- if (is.null(out)) tempfile("dpm-sbc-") else path_of(out)
  if (is.null(out)) on.exit(unlink(place, recursive = TRUE))
  flags <- as_arguments(list(rows = rows, epsilon = epsilon, delta = delta, constants = constants, out = place, ...))
  reporter <- reporter(progress)
  done <- run(c("sbc", "--color=never", reporter$flags, flags, "--", path), reporter = reporter)
  if (done$code != 0 || done$interrupted) stop(failure(done))
  if (!reporter$talks) warn(done$err)
  structure(read_json(paste(readLines(file.path(place, "sbc.json")), collapse = "\n")), class = "dpm_answer")
}

dpm_synth <- function(run, rows, out, ...) {
  flags <- as_arguments(list(rows = rows, out = out, ...))
  done <- run(c("synth", "--quiet", "--color=never", flags, "--", path_of(run)))
  if (done$code != 0 || done$interrupted) stop(failure(done))
  warn(done$err)
  about <- paste0(sub("\\.[^.]*$", "", out), ".about.json")
  structure(read_json(paste(readLines(about), collapse = "\n")), class = "dpm_answer")
}

dpm_pool <- function(file, rule = "full", ...) {
  flags <- as_arguments(list(rule = rule, ...))
  done <- run(c("pool", "--quiet", "--color=never", "--format=json", flags, "--", path_of(file)))
  if (done$code != 0 || done$interrupted) stop(failure(done))
  structure(read_json(done$out), class = "dpm_answer")
}

without_data <- function(command, model, flags, progress = FALSE) {
  path <- model_file(model)
  dpm_check(path, flags$constants)
  arguments <- c(command, "--color=never", as_arguments(flags))
  reporter <- reporter(progress)
  done <- run(c(arguments, reporter$flags, "--format=json", "--", path), reporter = reporter)
  if (done$code != 0 || done$interrupted) stop(failure(done))
  structure(read_json(done$out), class = "dpm_answer", command = c(arguments, "--quiet", "--", path))
}

# The answer as the program shows it to people, or else as JSON.
print.dpm_answer <- function(x, ...) {
  command <- attr(x, "command")
  if (is.null(command)) {
    cat(jsonlite::toJSON(unclass(x), auto_unbox = TRUE, pretty = TRUE, digits = NA, null = "null"), "\n")
  } else {
    done <- run(command)
    # What `check` says of a model is said on standard error.
    cat(trimws(paste0(done$err, done$out)), "\n", sep = "")
  }
  invisible(x)
}

dpm_generate <- function(model, run, constants = NULL, data = NULL, out = NULL, ...) {
  path <- model_file(model)
  dpm_check(path, constants)
  place <- if (is.null(out)) tempfile("dpm-") else path_of(out)
  if (is.null(out)) on.exit(unlink(place, recursive = TRUE))
  if (is.list(data)) {
    # These rows are public, so a file may hold them.
    rows <- tempfile("dpm-", fileext = ".csv")
    file <- file(rows, "wb")
    tryCatch(source_of(data)$feed(function(text) {
      writeBin(charToRaw(text), file)
      TRUE
    }), finally = close(file))
    on.exit(unlink(rows), add = TRUE)
    data <- rows
  }
  call_program("generate", path, path_of(run), flags = list(constants = constants, data = data, out = place, ...))
  read_chains(place, "generated")
}

dpm_info <- function(model, constants = NULL) {
  answer("info", model_file(model), flags = list(constants = constants))
}

# Through a pipe, so that no file changes.
dpm_fmt <- function(model) {
  path <- model_file(model)
  if (!file.exists(path) || dir.exists(path)) refuse("cannot read `", path, "`: expected a model's file, or its source")
  text <- readChar(path, file.size(path), useBytes = TRUE)
  call_program("fmt", table = list(paths = "-", feed = function(write) write(text)))
}

dpm_log_prob <- function(model, data, points, not_private = FALSE, constants = NULL, ...) {
  flags <- list(points = points, not_private = not_private, constants = constants, ...)
  answer("log-prob", model_file(model), flags = flags, table = source_of(data))
}

dpm_account <- function(event = NULL, relation, epsilon = NULL, delta = NULL, ...) {
  answer("account", flags = list(event = event, relation = relation, epsilon = epsilon, delta = delta, ...))
}

dpm_calibrate <- function(event = NULL, relation, epsilon, delta, ...) {
  answer("calibrate", flags = list(event = event, relation = relation, epsilon = epsilon, delta = delta, ...))
}

dpm_score <- function(run, data, epsilon, against = NULL, delta = NULL, ledger = NULL, unit = NULL,
                      statistic = NULL, ...) {
  table <- source_of(data)
  flags <- as_arguments(list(epsilon = epsilon, delta = delta, ledger = ledger, unit = unit, statistic = statistic, ...))
  others <- if (!is.null(against)) paste0("--against=", vapply(as_runs(against), path_of, ""))
  arguments <- c("score", "--quiet", "--color=never", "--format=json", flags, others, "--", path_of(run), table$paths)
  done <- run(arguments, table$feed)
  if (done$code != 0 || done$interrupted) stop(failure(done, omitted = table$omitted))
  warn(done$err)
  structure(read_json(done$out), class = "dpm_answer")
}

# A fit is a list too.
as_runs <- function(runs) if (is.list(runs) && !inherits(runs, "dpm_fit")) runs else list(runs)

dpm_compare <- function(run, reference) answer("compare", path_of(run), path_of(reference))

dpm_convert <- function(run, to, out = NULL, ...) {
  directory <- path_of(run)
  path <- if (is.null(out)) paste0(directory, ".", to) else path_of(out)
  call_program("convert", directory, flags = list(to = to, out = path, ...))
  path
}

dpm_ledger_create <- function(ledger, epsilon, delta, ...) {
  call_program(c("ledger", "create"), path_of(ledger), flags = list(epsilon = epsilon, delta = delta, ...))
  dpm_ledger(ledger)
}

dpm_ledger <- function(ledger) structure(list(path = path_of(ledger)), class = "dpm_ledger")

dpm_ledger_show <- function(ledger) {
  path <- path_of(ledger)
  structure(answer(c("ledger", "show"), path, flags = list(format = "json")),
            command = c("ledger", "show", "--color=never", "--", path))
}

dpm_ledger_verify <- function(ledger, against = NULL) {
  if (inherits(against, "dpm_fit")) against <- list(against)
  against <- if (!is.null(against)) vapply(against, path_of, "", USE.NAMES = FALSE)
  trimws(call_program(c("ledger", "verify"), path_of(ledger), flags = list(against = against)))
}

dpm_ledger_adopt <- function(ledger) {
  call_program(c("ledger", "adopt"), path_of(ledger))
  invisible(dpm_ledger(ledger))
}

print.dpm_ledger <- function(x, ...) {
  print(dpm_ledger_show(x))
  invisible(x)
}
