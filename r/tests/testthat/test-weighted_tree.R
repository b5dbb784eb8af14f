people <- function(n = 240, seed = 1) {
  set.seed(seed)
  X <- matrix(sample(0:5, n * 2, replace = TRUE), n, 2, dimnames = list(NULL, c("age", "score")))
  W <- sample(c("usual", "drug"), n, replace = TRUE)
  list(X = X, W = W, Y = ifelse(W == "drug", 3 * sign(X[, 1] - 2.5), 0) + rnorm(n))
}

test_that("no tree of the rewards is better, whatever rewards are used", {
  skip_without_python()
  data <- people()
  for (method in c("dr", "ipw", "regression", "matching")) {
    tree <- weighted_tree(data$X, data$Y, data$W, method = method, depth = 1, min.node.size = 20, propensity = 0.5,
                          value = FALSE)
    expect_equal(colnames(tree$rewards), c("drug", "usual"))
    expect_equal(reward_of(tree, data$X, tree$rewards), best_reward(data$X, tree$rewards, 1, 20))
    expect_equal(tree$optimality.gap, 0)
    expect_null(tree$value)
    expect_equal(tree$columns[tree$nodes[[1]]$split_variable], "age")
  }
})

test_that("copies, draws and guesses say how far the best tree can be", {
  skip_without_python()
  data <- people(seed = 2)
  for (solver in c("duplication", "sampling")) {
    tree <- weighted_tree(data$X, data$Y, data$W, solver = solver, guesses = c("thresholds", "lower_bounds"), depth = 1,
                          min.node.size = 1, propensity = c(usual = 0.5, drug = 0.5), value = FALSE)
    lost <- (best_reward(data$X, tree$rewards, 1) - reward_of(tree, data$X, tree$rewards)) / nrow(data$X)
    expect_gte(lost, -1e-9)
    expect_match(tree$certificate, if (solver == "sampling") "theorem 3" else "theorem 2")
    expect_true(is.numeric(tree$guarantees$theorem_1))
  }
  all <- weighted_tree(data$X, data$Y, data$W, solver = "sampling", guesses = "all", min.node.size = 1, value = FALSE)
  expect_match(all$certificate, "theorem 1")
  expect_gte(all$guarantees$probable_bound, reward_of(all, data$X, all$rewards) / nrow(data$X) - 1e-9)
  free <- weighted_tree(data$X, data$Y, data$W, solver = "duplication", depth = 1, min.node.size = 1, value = FALSE)
  best <- best_reward(data$X, free$rewards, 1) / nrow(data$X)
  expect_lte(best - reward_of(free, data$X, free$rewards) / nrow(data$X), free$optimality.gap + 1e-9)
})

test_that("the regime is judged on rows that did not choose it", {
  skip_without_python()
  data <- people(seed = 3)
  tree <- weighted_tree(data$X, data$Y, factor(data$W), method = "ipw", depth = 1, propensity = 0.5, n.repeats = 1)
  expect_true(all(c("policy tree", "always drug", "always usual") %in% rownames(tree$value)))
  own <- tree$value["policy tree", ]
  expect_lt(own$lower, own$value)
  expect_gt(own$value, tree$value["always drug", "value"])
  expect_lt(own$value, mean(apply(tree$rewards, 1, max)))
  expect_output(print(tree), "Rewards: ipw, solver: direct")
  expect_output(print(tree), "Held-out values")
  expect_equal(predict(unserialize(serialize(tree, NULL)), data$X), predict(tree, data$X))
})

test_that("bad input of weighted_tree gets a sentence", {
  data <- people()
  expect_error(weighted_tree(data$X, data$Y[-1], data$W), "X has 240 rows and Y 239")
  expect_error(weighted_tree(data$X, data$Y, data$W[-1]), "X has 240 rows and W 239")
  expect_error(weighted_tree(data$X, data$Y, replace(data$W, 2, NA)), "W has missing values")
  expect_error(weighted_tree(data$X, replace(data$Y, 2, NA), data$W), "Y has missing or infinite values")
  expect_error(weighted_tree(data$X, data$Y, data$W, method = "magic"), "should be one of")
  expect_error(weighted_tree(data$X, data$Y, data$W, propensity = c(a = 0.5, b = 0.5)), "named by the treatments, drug, usual")
  expect_error(weighted_tree(data$X, data$Y, data$W, depth = -1), "depth must be a whole number of at least 0")
  skip_without_python()
  expect_error(weighted_tree(data$X, data$Y, data$W, guesses = "magic"), "guesses")
  expect_error(weighted_tree(data$X, data$Y, rep("drug", 240)), "holds only one treatment")
})
