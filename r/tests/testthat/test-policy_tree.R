study <- function(n = 40, p = 3, k = 3, seed = 1) {
  set.seed(seed)
  X <- matrix(sample(0:5, n * p, replace = TRUE), n, p)
  list(X = X, Gamma = matrix(rnorm(n * k), n, k) + cbind(X[, 1] > 2, X[, 2] > 2, 0))
}

test_that("no tree is better", {
  skip_without_python()
  for (depth in 0:2) for (least in c(1, 5)) {
    data <- study(seed = depth + least)
    tree <- policy_tree(data$X, data$Gamma, depth = depth, min.node.size = least, verbose = FALSE)
    expect_equal(reward_of(tree, data$X, data$Gamma), best_reward(data$X, data$Gamma, depth, least))
    expect_equal(tree$optimality.gap, 0)
    expect_gte(min(table(predict(tree, data$X, type = "node.id"))), least)
  }
})

test_that("the reward is the one that R's policytree finds", {
  skip_without_python()
  case <- Sys.getenv("POLICYTREE_CASE")
  skip_if(case == "", "POLICYTREE_CASE names no file")
  table <- as.matrix(read.csv(case))
  tree <- policy_tree(table[, 1:5], table[, 6:7], verbose = FALSE)
  expect_lte(abs(reward_of(tree, table[, 1:5], table[, 6:7]) - 253.756240), 5e-7)  # known to six digits
})

test_that("nodes are numbered from the root, level by level", {
  skip_without_python()
  data <- study(n = 200)
  tree <- policy_tree(data$X, data$Gamma, depth = 2, verbose = FALSE)
  children <- unlist(lapply(tree$nodes, function(node) c(node$left_child, node$right_child)))
  expect_equal(children, seq_along(tree$nodes)[-1])
  leaves <- predict(tree, data$X, type = "node.id")
  expect_true(all(vapply(tree$nodes[unique(leaves)], function(node) node$is_leaf, logical(1))))
  actions <- vapply(tree$nodes[leaves], function(node) node$action, integer(1))
  expect_equal(actions, predict(tree, data$X))
  expect_type(predict(tree, data$X), "integer")
  values <- unlist(lapply(tree$nodes, function(node) node$split_value))
  expect_true(all(values %in% data$X))
})

test_that("split.step leaves every so many values of a sorted column", {
  skip_without_python()
  set.seed(3)
  X <- matrix(rnorm(300), 300, 1)
  Gamma <- cbind(0, ifelse(X[, 1] > 0, 1, -1) + rnorm(300))
  tree <- policy_tree(X, Gamma, depth = 1, split.step = 50, verbose = FALSE)
  expect_true(tree$nodes[[1]]$split_value %in% sort(X)[seq(50, 300, 50)])
  whole <- policy_tree(X, Gamma, depth = 1, verbose = FALSE)
  expect_gte(reward_of(whole, X, Gamma), reward_of(tree, X, Gamma))
  one <- policy_tree(X, Gamma, depth = 1, split.step = 1000, verbose = FALSE)
  expect_length(one$nodes, 1)
})

test_that("names of columns are kept, data frames are taken, and more of Python's arguments", {
  skip_without_python()
  data <- study()
  colnames(data$X) <- c("age", "sex", "score")
  colnames(data$Gamma) <- c("usual", "drug", "talk")
  tree <- policy_tree(as.data.frame(data$X), data$Gamma, verbose = FALSE, max_leaf_nodes = 2L)
  expect_equal(tree$columns, colnames(data$X))
  expect_equal(tree$action.names, colnames(data$Gamma))
  expect_length(tree$nodes, 3)
  expect_output(print(tree), "split_variable: (age|sex|score)  split_value: [0-9]")
  expect_output(print(tree), "Actions:  1: usual 2: drug 3: talk")
  expect_output(print(tree), "gap 0")
})

test_that("limits name actions by their columns, in any order of the alphabet", {
  skip_without_python()
  data <- study(n = 300)
  colnames(data$Gamma) <- c("z", "m", "a")
  free <- policy_tree(data$X, data$Gamma, verbose = FALSE)
  expect_equal(reward_of(free, data$X, data$Gamma), reward_of(
    policy_tree(data$X, unname(data$Gamma), verbose = FALSE), data$X, data$Gamma
  ))
  limits <- reticulate::import("policytree.constraints")
  few <- policy_tree(data$X, data$Gamma, verbose = FALSE, constraints = list(limits$Share("a", most=0.1)))
  expect_lte(mean(predict(few, data$X) == 3), 0.1)
  expect_match(few$certificate, "shares")
  many <- matrix(rnorm(40 * 11), 40, 11)  # "10" sorts before "2"
  tree <- policy_tree(data$X[1:40, ], many, depth = 0, verbose = FALSE)
  expect_equal(predict(tree, data$X[1, , drop = FALSE]), which.max(colSums(many)))
})

test_that("a saved tree needs no Python, and can be drawn", {
  skip_without_python()
  data <- study()
  tree <- policy_tree(data$X, data$Gamma, verbose = FALSE)
  file <- tempfile(fileext = ".rds")
  saveRDS(tree, file)
  expect_equal(predict(readRDS(file), data$X), predict(tree, data$X))
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  expect_identical(plot(tree), tree)
  expect_error(plot(tree, leaf.labels = "one"), "leaf.labels has 1 entries; give one for each of the 3 actions")
})

test_that("bad input gets a sentence", {
  data <- study()
  expect_error(policy_tree(data$X, data$Gamma[-1, ]), "X has 40 rows and Gamma 39")
  expect_error(policy_tree("a", data$Gamma), "X is no matrix of numbers")
  expect_error(policy_tree(data$X, replace(data$Gamma, 3, NA)), "Gamma has missing or infinite values")
  expect_error(policy_tree(data$X, cbind(a = 1, a = data$X[, 1])), "Gamma has two columns named a; rename one")
  expect_error(policy_tree(data$X, data$Gamma, depth = 1.5), "depth must be a whole number of at least 0")
  expect_error(policy_tree(data$X, data$Gamma, split.step = 0), "split.step must be a whole number of at least 1")
  skip_without_python()
  tree <- policy_tree(data$X, data$Gamma, verbose = FALSE)
  expect_error(predict(tree, data$X[, 1:2]), "newdata has 2 columns, but the tree was fitted to 3")
  expect_error(predict(tree, data$X, type = "leaf"), "should be one of")
  expect_error(policy_tree(data$X, data$Gamma, regularization = -1, verbose = FALSE), "regularization")
})
