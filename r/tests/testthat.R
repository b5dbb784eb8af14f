library(testthat)
library(policytreepy)

test_check("policytreepy")
