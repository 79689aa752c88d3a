library(testthat)
library(dpmbayes)

test_check("dpmbayes")
