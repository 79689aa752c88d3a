# A run: its draws, what is promised of them, and whether they can be used.

dpm_fit <- function(directory) {
  directory <- path_of(directory)
  if (!file.exists(file.path(directory, "privacy.json"))) {
    refuse("`", directory, "` is not the directory of a finished run: it has no privacy.json")
  }
  fit <- new.env(parent = emptyenv())
  # Absolute, so that it is still there from another working directory.
  fit$directory <- directory <- normalizePath(directory)
  known <- list()
  once <- function(name, value) {
    if (is.null(known[[name]])) known[[name]] <<- value
    known[[name]]
  }
  file_of <- function(name) read_json(paste(readLines(file.path(directory, name), encoding = "UTF-8"), collapse = "\n"))
  diagnosis <- function() once("diagnosis", answer("diagnose", directory, flags = list(format = "json")))

  fit$draws <- function() once("draws", read_chains(directory, "chain"))
  fit$sampler_diagnostics <- function() once("sampler", read_chains(directory, "chain", of_sampler = TRUE))
  fit$privacy <- function() once("privacy", file_of("privacy.json"))
  fit$config <- function() once("config", file_of("config.json"))
  fit$decision <- function() diagnosis()$decision
  fit$ok <- function() fit$decision() != "do_not_use"
  fit$verdicts <- function() {
    found <- diagnosis()$verdicts
    column <- function(key) vapply(found, function(v) if (is.null(v[[key]])) NA_character_ else v[[key]], "")
    data.frame(code = column("kind"), severity = column("severity"), text = column("sentence"),
               advice = column("advice"))
  }
  fit$summary <- function(...) {
    table <- posterior::summarise_draws(fit$draws(), ...)
    structure(table, class = c("dpm_summary", class(table)), decision = fit$decision(), verdict = verdict(fit))
  }
  fit$report <- function(open = interactive()) {
    path <- file.path(directory, "report.html")
    if (!file.exists(path)) call_program("report", directory)
    if (open) utils::browseURL(path)
    invisible(path)
  }
  fit$generate <- function(model = file.path(directory, "model.dpm"), ...) dpm_generate(model, fit, ...)
  structure(fit, class = "dpm_fit")
}

# The decision in a sentence, and the gravest finding.
verdict <- function(fit) {
  sentence <- c(use = "These draws can be used.", use_with_care = "These draws can be used with care.",
                do_not_use = "Do not use these draws.")[[fit$decision()]]
  found <- fit$verdicts()
  grave <- found$text[found$severity != "good"]
  paste("verdict:", sentence, if (length(grave)) grave[1])
}

print.dpm_fit <- function(x, ...) {
  privacy <- x$privacy()
  cat(strwrap(verdict(x)), sep = "\n")
  promise <- if (!isTRUE(privacy$private)) "NOT PRIVATE" else {
    paste0("epsilon ", number(privacy$epsilon), " at delta ", number(privacy$delta), ", relation ", privacy$relation)
  }
  draws <- x$draws()
  cat(posterior::nchains(draws), " chains of ", posterior::niterations(draws), " draws; ", promise, "\n", sep = "")
  print(posterior::summarise_draws(draws))
  invisible(x)
}

print.dpm_summary <- function(x, ...) {
  cat(strwrap(attr(x, "verdict")), sep = "\n")
  NextMethod()
  invisible(x)
}

summary.dpm_fit <- function(object, ...) object$summary(...)

as_draws.dpm_fit <- function(x, ...) x$draws()

# Files as Stan writes them; `beta.1.2` is `beta[1,2]`. Chains of an interrupted run are cut to the
# length of the shortest.
read_chains <- function(directory, prefix, of_sampler = FALSE) {
  files <- list.files(directory, paste0("^", prefix, "-[0-9]+\\.csv$"), full.names = TRUE)
  files <- files[order(as.integer(gsub("\\D", "", basename(files))))]
  chains <- lapply(files, function(file) {
    table <- utils::read.csv(file, comment.char = "#", check.names = FALSE, colClasses = "numeric",
                             na.strings = c("NA", "nan", "NaN"))
    # The log density is not released.
    as.matrix(table[endsWith(names(table), "__") == of_sampler & names(table) != "lp__"])
  })
  shortest <- min(vapply(chains, nrow, 1L))
  variables <- sub("\\.(.*)$", "[\\1]", colnames(chains[[1]]))
  variables <- gsub(".", ",", variables, fixed = TRUE)
  draws <- array(dim = c(shortest, length(chains), length(variables)), dimnames = list(NULL, NULL, variables))
  for (i in seq_along(chains)) draws[, i, ] <- chains[[i]][seq_len(shortest), ]
  posterior::as_draws_array(draws)
}
