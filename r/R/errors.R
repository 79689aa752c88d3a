# What can go wrong. No message holds a value of the data, and no condition a call, which might
# hold the table itself.

problem <- function(message, class, ...) {
  structure(class = c(class, "dpm_error", "error", "condition"), list(message = message, call = NULL, ...))
}

refuse <- function(..., class = "dpm_input_error") {
  stop(problem(paste0(...), class, code = if (is.null(class)) 1 else 2))
}

is_error <- function(lines) startsWith(lines, "error: ") | startsWith(lines, "error[")

# What is wrong, of all that the program has said.
complaint <- function(err) {
  lines <- strsplit(err, "\n", fixed = TRUE)[[1]]
  start <- which(is_error(lines))[1]
  if (is.na(start)) return(if (length(lines)) lines[length(lines)] else "the program ended without a word")
  sub("^error: ", "", trimws(paste(lines[start:length(lines)], collapse = "\n")))
}

# A message in the words of this package: `--on-bad-rows skip` is `on_bad_rows = "skip"`. Commands stay
# as they are.
in_arguments <- function(text) {
  assignment <- function(given, several) {
    name <- gsub("-", "_", sub(" .*", "", given), fixed = TRUE)
    value <- if (grepl(" ", given)) sub("^[^ ]* ", "", given) else ""
    if (!nzchar(value)) return(if (several) paste(name, "= TRUE") else name)
    if (name == "columns" && grepl("=", value)) {
      value <- sub("^([^=]*)=(.*)$", "list(\\1 = \"\\2\")", value)
    } else if (value != toupper(value)) {
      value <- if (grepl("^[0-9.e+-]+$", value)) value else paste0("\"", value, "\"")
    }
    paste(name, "=", value)
  }
  in_words <- function(found) {
    if (startsWith(found, "`--")) {
      given <- strsplit(substr(found, 4, nchar(found) - 1), " --", fixed = TRUE)[[1]]
      return(paste0("`", paste(vapply(given, assignment, "", length(given) > 1), collapse = ", "), "`"))
    }
    if (startsWith(found, "`")) return(found)
    gsub("-", "_", sub("^--", "", sub(" <.*", "", found)), fixed = TRUE)
  }
  text <- strsplit(text, "\n\n(Usage: |For more information)")[[1]][1]
  text <- gsub("standard input", "the table", text, fixed = TRUE)
  found <- gregexpr("`[^`]*`|(?<![\\w./-])--[a-z]+(?:-[a-z]+)*(?: <[^>]*>)?", text, perl = TRUE)
  regmatches(text, found) <- list(vapply(regmatches(text, found)[[1]], in_words, ""))
  text
}

# The condition for a command that failed. `omitted` are columns that were not handed over.
failure <- function(done, directory = NULL, omitted = NULL) {
  text <- in_arguments(complaint(done$err))
  has <- function(name) !is.null(directory) && file.exists(file.path(directory, name))
  if (!has("unfinished") && !has("privacy.json")) directory <- NULL # nothing was released
  if (done$interrupted || done$code == 130) {
    if (done$code == 0) text <- "interrupted, when the program had just ended"
    if (!is.null(directory)) text <- paste0(text, " (", directory, ")")
    return(problem(text, "dpm_interrupted", code = 130, directory = directory))
  }
  if (done$code == 2) return(problem(paste0(text, about_omitted(omitted)), "dpm_input_error", code = 2))
  if (done$code == 3) {
    said <- function(what) as.numeric(regmatches(text, regexec(paste0(what, " (inf|-?[0-9.e+-]*[0-9])"), text))[[1]][2])
    return(problem(text, "dpm_budget_exceeded", code = 3, requested = said("requested"), spent = said("spent"),
                   remaining = said("remaining")))
  }
  if (done$code < 0) text <- paste("the program was ended by signal", -done$code)
  if (has("unfinished")) {
    text <- paste0(text, "\nthe run so far is in ", directory, ": dpm_resume goes on with it, at no further charge")
  }
  problem(text, NULL, code = 1, directory = directory)
}

# What the program says even if it is told to be quiet: NOT PRIVATE, or not to be used.
warn <- function(err) {
  for (line in strsplit(err, "\n", fixed = TRUE)[[1]]) {
    warning(structure(class = c("dpm_warning", "warning", "condition"), list(message = line, call = NULL)))
  }
}
