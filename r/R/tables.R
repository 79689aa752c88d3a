# Private tables on their way to the program: CSV text through a pipe, never on a disk.

# What hands `data` over: `paths` for the command line, and `feed` for what goes through the pipe.
# `omitted` are columns that the program cannot read.
source_of <- function(data) {
  if (is.character(data) && is.null(dim(data)) && length(data) && !anyNA(data)) {
    return(list(paths = path.expand(data)))
  }
  # A lazy table of a database is a list as well, but of other things than columns.
  if (!is.data.frame(data) && !(is.list(data) && !is.object(data))) {
    refuse("expected a data frame, a named list of columns, or paths; found a ", class(data)[1],
           " (a query's table: dplyr::collect() it)")
  }
  if (is.null(names(data)) || anyNA(names(data)) || !all(nzchar(names(data)))) {
    refuse("the columns need names, those of the model's `record`")
  }
  columns <- list()
  for (i in seq_along(data)) {
    column <- data[[i]]
    name <- names(data)[i]
    if (is.matrix(column)) {
      parts <- lapply(seq_len(ncol(column)), function(k) column[, k])
      columns <- c(columns, stats::setNames(parts, paste0(name, ".", seq_len(ncol(column)))))
    } else {
      columns <- c(columns, stats::setNames(list(column), name))
    }
  }
  if (length(unique(vapply(columns, NROW, 1L))) > 1) {
    refuse("the columns differ in length: give each as many values as there are rows")
  }
  fits <- vapply(columns, is_readable, TRUE)
  feed <- function(write) write_csv(columns[fits], write)
  list(paths = "-", feed = feed, omitted = unique(names(columns)[!fits]))
}

# Dates and the like have no one number; integer64 has none without its package.
is_readable <- function(column) {
  if (inherits(column, "integer64")) return(isNamespaceLoaded("bit64"))
  is.null(dim(column)) && (is.numeric(column) || is.logical(column) || is.factor(column) || is.character(column))
}

# To what the program says of a column that it does not find.
about_omitted <- function(omitted) {
  if (!length(omitted)) return("")
  paste0("\n(not handed over, since they are not numbers, truth values, factors or text: ",
         paste0("`", omitted, "`", collapse = ", "), ")")
}

write_csv <- function(columns, write) {
  write(paste0(paste(quoted(names(columns)), collapse = ","), "\n"))
  rows <- if (length(columns)) length(columns[[1]]) else 0
  at <- 1
  while (at <= rows) {
    block <- at:min(at + 9999, rows)
    lines <- Reduce(function(a, b) paste(a, b, sep = ","), lapply(columns, function(column) cells(column[block])))
    # FALSE where the program has stopped reading, and will say why.
    if (!write(paste0(paste(lines, collapse = "\n"), "\n"))) return()
    at <- at + 10000
  }
}

cells <- function(x) {
  missing <- is.na(x)
  text <- if (inherits(x, "integer64")) as.character(x)
  else if (is.factor(x) || is.character(x)) quoted(as.character(x))
  else if (is.double(x)) sprintf("%.17g", as.vector(unclass(x)))
  else sprintf("%d", as.integer(x))
  text[missing] <- ""
  text
}

# A line feed would begin another record, so it becomes a space.
quoted <- function(x) {
  x <- enc2utf8(x)
  odd <- !is.na(x) & !validUTF8(x)
  x[odd] <- iconv(x[odd], "latin1", "UTF-8")
  paste0('"', gsub("[\r\n]+", " ", gsub('"', '""', x, fixed = TRUE)), '"')
}
