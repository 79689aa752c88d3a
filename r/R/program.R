# The program `dpm`, as a child process.

checked <- new.env()

dpm_program <- function() {
  path <- getOption("dpm.program", Sys.getenv("DPM"))
  if (!nzchar(path)) path <- Sys.which("dpm")[[1]]
  if (!nzchar(path)) {
    refuse("the program `dpm` is not there: put its path in options(dpm.program = ), in the ",
           "environment variable DPM, or its folder on PATH", class = NULL)
  }
  path <- path.expand(path)
  if (is.null(checked[[path]])) {
    said <- tryCatch(processx::run(path, "--version", error_on_status = FALSE)$stdout,
                     error = function(e) NULL)
    if (is.null(said)) {
      refuse("cannot run `", path, "`: check options(dpm.program = ), DPM and PATH", class = NULL)
    }
    version <- as.character(utils::packageVersion("dpmbayes"))
    said <- trimws(said)
    if (said != paste("dpm", version)) {
      refuse("`", path, "` is ", if (nzchar(said)) said else "no dpm", ", and this package is for dpm ",
             version, ": install both from the same source", class = NULL)
    }
    checked[[path]] <- version
  }
  path
}

dpm_version <- function() checked[[dpm_program()]]

# Runs a command. `feed` is called with a function that writes text to the child's standard input,
# which never goes through a file. `reporter` hears what the program says. An error of its own is
# signalled when the program has ended, after it was stopped as by Ctrl-C.
run <- function(arguments, feed = NULL, reporter = NULL) {
  child <- processx::process$new(dpm_program(), arguments, stdin = if (!is.null(feed)) "|",
                                 stdout = "|", stderr = "|", encoding = "UTF-8")
  on.exit(child$kill())
  if (!is.null(reporter)) on.exit(reporter$close(), add = TRUE)
  out <- err <- character()
  trouble <- NULL
  hear <- function(line) {
    about <- !is.null(reporter) && is.null(trouble) && tryCatch(reporter$hear(line), error = function(e) {
      trouble <<- e
      child$interrupt()
      TRUE
    })
    if (about) return()
    err <<- c(err, line)
    # An error becomes a condition; the text that led to it is not said twice.
    if (isTRUE(reporter$talks) && is.null(trouble) && !any(is_error(err))) cat(line, "\n", sep = "", file = stderr())
  }
  listen <- function(ms) {
    child$poll_io(ms)
    out <<- c(out, child$read_output())
    for (line in child$read_error_lines()) hear(line)
  }
  if (!is.null(feed)) {
    wrong <- hand_over(child, feed, listen)
    if (!is.null(wrong)) stop(wrong)
  }
  interrupts <- 0
  repeat {
    ended <- tryCatch({
      while (child$is_incomplete_output() || child$is_incomplete_error()) listen(200)
      child$wait()
      TRUE
    }, interrupt = function(i) FALSE)
    if (ended) break
    interrupts <- interrupts + 1
    if (interrupts > 2) child$kill() else child$interrupt()
  }
  if (!is.null(trouble)) stop(trouble)
  list(code = child$get_exit_status(), out = paste(out, collapse = ""),
       err = paste(err, collapse = "\n"), interrupted = interrupts > 0)
}

# Writes the table; NULL, or the condition to signal.
hand_over <- function(child, feed, listen) {
  open <- TRUE
  write <- function(text) {
    left <- charToRaw(text)
    while (open && length(left)) {
      # Where the program has closed the pipe, it says why.
      left <- tryCatch(child$write_input(left), error = function(e) {
        open <<- FALSE
        raw()
      })
      # The child may have to be listened to before it reads on.
      listen(if (length(left)) 5 else 0)
    }
    open
  }
  wrong <- tryCatch({
    suppressWarnings(feed(write))
    NULL
  }, dpm_error = function(e) e, error = function(e) {
    # Its message might hold a value.
    problem(paste0("the table cannot be read: ", class(e)[1], ", whose message might hold values and ",
                   "is not shown. Make sure that its columns hold numbers, truth values or text"),
            "dpm_input_error", code = 2)
  }, interrupt = function(i) problem("interrupted, before the table was handed over", "dpm_interrupted", code = 130))
  # Before its input ends, so that a part of a table is never taken for all of it.
  if (!is.null(wrong)) child$kill() else close(child$get_input_connection())
  wrong
}

# What a command prints. Warnings that its numbers are not private become R's. `table` is what
# source_of() makes of the data, whose paths come last.
call_program <- function(command, ..., flags = list(), table = NULL) {
  done <- run(c(command, "--quiet", "--color=never", as_arguments(flags), "--", ..., table$paths), table$feed)
  if (done$code != 0 || done$interrupted) stop(failure(done, omitted = table$omitted))
  warn(done$err)
  done$out
}

# The JSON that a command prints.
answer <- function(...) structure(read_json(call_program(...)), class = "dpm_answer")

read_json <- function(text) {
  jsonlite::fromJSON(text, simplifyDataFrame = FALSE, simplifyMatrix = FALSE)
}

# Named arguments as flags: `num_samples = 500` is `--num-samples=500`.
as_arguments <- function(flags) {
  if (length(flags) && (is.null(names(flags)) || !all(nzchar(names(flags))))) {
    refuse("expected named arguments after the first ones, such as num_samples = 500")
  }
  one <- function(name) {
    flag <- paste0("--", gsub("_", "-", name, fixed = TRUE))
    value <- flags[[name]]
    if (is.null(value) || identical(value, FALSE)) return(NULL)
    if (identical(value, TRUE)) return(flag)
    paste0(flag, "=", flag_texts(name, value))
  }
  unlist(lapply(names(flags), one))
}

flag_texts <- function(name, value) {
  if (inherits(value, c("dpm_ledger", "dpm_fit"))) return(path_of(value))
  if (name == "columns" && is.list(value)) {
    header <- function(x) ifelse(grepl('[,"]', x), paste0('"', gsub('"', '""', x), '"'), x)
    return(paste0(names(value), "=", vapply(value, function(x) paste(header(x), collapse = ","), "")))
  }
  if (is.list(value) && all(vapply(value, inherits, TRUE, c("dpm_fit", "dpm_ledger")))) {
    return(vapply(value, path_of, ""))
  }
  if (is.list(value)) return(json_file(name, value))
  if (is.numeric(value) && !anyNA(value)) return(paste(number(value), collapse = ","))
  if (is.character(value) && !anyNA(value)) return(if (name %in% places) path.expand(value) else value)
  refuse("`", name, "`: expected a number, text, TRUE, FALSE or NULL")
}

places <- c("constants", "init", "ledger", "out", "spill_dir", "data", "pilot", "public_sample", "against", "points", "events",
            "metadata", "parameters", "simulate_from", "covariates")

# As short as it can be while it comes back to the bit.
number <- function(x) {
  short <- sprintf("%.15g", x)
  same <- is.finite(x) & suppressWarnings(as.numeric(short)) == x
  whole <- is.finite(x) & x == trunc(x) & abs(x) < 1e15
  ifelse(whole, sprintf("%.0f", x), ifelse(same, short, sprintf("%.17g", x)))
}

json_file <- function(name, value) {
  folder <- tempfile("dpm-")
  dir.create(folder)
  path <- file.path(folder, paste0(name, ".json"))
  writeLines(enc2utf8(json(value, name)), path, useBytes = TRUE)
  path
}

# As jsonlite, which rounds numbers to 15 digits. One number is a number, and I(1) a list of one.
json <- function(x, name) {
  list_of <- function(items) paste0("[", paste(items, collapse = ","), "]")
  if (is.factor(x)) x <- as.character(x)
  if (is.list(x)) {
    items <- vapply(x, json, "", name)
    if (is.null(names(x))) return(list_of(items))
    keys <- vapply(names(x), function(key) as.character(jsonlite::toJSON(key, auto_unbox = TRUE)), "")
    return(paste0("{", paste0(keys, ":", items, collapse = ","), "}"))
  }
  if (length(dim(x)) > 1) {
    return(list_of(apply(x, 1, function(row) json(if (is.null(dim(row))) I(row) else row, name))))
  }
  known <- is.numeric(x) && all(is.finite(x)) || (is.logical(x) || is.character(x)) && !anyNA(x)
  if (!known) refuse("`", name, "`: expected finite numbers, text, and lists of these")
  items <- if (is.numeric(x)) number(as.vector(unclass(x))) else {
    vapply(as.vector(unclass(x)), function(item) as.character(jsonlite::toJSON(item, auto_unbox = TRUE)), "")
  }
  if (length(x) == 1 && !inherits(x, "AsIs")) items[[1]] else list_of(items)
}

# The path of a fit, a ledger or a file.
path_of <- function(x) {
  if (inherits(x, "dpm_fit")) return(x$directory)
  if (inherits(x, "dpm_ledger")) return(x$path)
  if (!is.character(x) || length(x) != 1 || is.na(x)) refuse("expected one path")
  path.expand(x)
}

# The file of a model: a path, or source text, which has a line feed.
model_file <- function(model) {
  if (!is.character(model) || length(model) != 1 || !grepl("\n", model, fixed = TRUE)) return(path_of(model))
  folder <- tempfile("dpm-model-")
  dir.create(folder)
  path <- file.path(folder, "model.dpm")
  writeLines(enc2utf8(model), path, useBytes = TRUE)
  path
}
