# How far a run is: the program's lines of JSON, as bars or for a function.

# `talks`: whether messages are passed on; else they become warnings when the program has ended.
reporter <- function(progress) {
  talks <- isTRUE(progress)
  bar <- NULL
  stage <- ""
  close_bar <- function() {
    if (!is.null(bar)) close(bar)
    bar <<- NULL
  }
  # The bar shows no times, from which the number of records could be guessed.
  draw <- function(step) {
    if (step$stage != stage) {
      close_bar()
      stage <<- step$stage
      cat(stage, "\n", sep = "", file = stderr())
      bar <<- utils::txtProgressBar(style = 3, file = stderr())
    }
    utils::setTxtProgressBar(bar, step$done / step$total)
    if (step$done == step$total) close_bar()
  }
  each <- if (is.function(progress)) progress else if (talks) draw
  list(
    flags = c(if (!talks) "--quiet", if (!is.null(each)) "--progress=json"),
    talks = talks,
    # Whether a line was about progress.
    hear = function(line) {
      about <- !is.null(each) && startsWith(line, '{"stage":')
      if (about) each(read_json(line))
      about
    },
    close = close_bar
  )
}
