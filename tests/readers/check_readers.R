# Reads runs with the readers of R, and compares what they find with summary.csv.
#
#     Rscript tests/readers/check_readers.R RUN...
#
# Needs the package posterior, which Debian has as r-cran-posterior. Where cmdstanr is installed,
# its readers are checked as well.

suppressPackageStartupMessages(library(posterior))

check <- function(what, found, expected, tolerance = 1e-6) {
  # Summaries have a number type of their own.
  if (is.numeric(expected)) found <- as.numeric(found)
  if (!isTRUE(all.equal(found, expected, tolerance = tolerance, check.attributes = FALSE))) {
    stop(what, ": ", paste(head(found), collapse = " "), " for ",
         paste(head(expected), collapse = " "))
  }
}

check_run <- function(run) {
  files <- list.files(run, pattern = "^chain-[0-9]+\\.csv$", full.names = TRUE)
  if (length(files) == 0) stop("no chain-1.csv")
  files <- files[order(as.integer(gsub("\\D", "", basename(files))))]
  chains <- lapply(files, read.csv, comment.char = "#", check.names = FALSE)
  parameters <- names(chains[[1]])[!endsWith(names(chains[[1]]), "__")]
  # beta.1.2 as beta[1,2]
  bracket <- function(name) {
    parts <- strsplit(name, ".", fixed = TRUE)[[1]]
    if (length(parts) == 1) name else paste0(parts[1], "[", paste(parts[-1], collapse = ","), "]")
  }
  names_in_r <- vapply(parameters, bracket, "")
  draws <- array(
    unlist(lapply(chains, function(chain) as.matrix(chain[parameters]))),
    dim = c(nrow(chains[[1]]), length(parameters), length(chains))
  )
  draws <- as_draws_array(aperm(draws, c(1, 3, 2)))
  variables(draws) <- names_in_r
  ours <- read.csv(file.path(run, "summary.csv"), check.names = FALSE)
  theirs <- summarise_draws(draws, "mean", "sd")
  check("variables", theirs$variable, ours[[1]])
  check("means", theirs$mean, ours$mean)
  check("standard deviations", theirs$sd, ours$sd)

  readers <- paste("posterior", packageVersion("posterior"))
  if (requireNamespace("cmdstanr", quietly = TRUE)) {
    is_nuts <- any(readLines(files[1], n = 40) == "# engine = nuts")
    # Of other samplers there are no diagnostics of HMC to check.
    fit <- cmdstanr::as_cmdstan_fit(files, check_diagnostics = is_nuts)
    found <- fit$summary(names_in_r, "mean")
    check("means by cmdstanr", found$mean, ours$mean)
    readers <- paste(readers, "and cmdstanr", packageVersion("cmdstanr"))
  }
  cat(run, ": ", length(files), " chains read alike by ", readers, "\n", sep = "")
}

runs <- commandArgs(trailingOnly = TRUE)
if (length(runs) == 0) stop("which runs? Give their directories")
for (run in runs) {
  tryCatch(check_run(run), error = function(e) stop(run, ": ", conditionMessage(e), call. = FALSE))
}
