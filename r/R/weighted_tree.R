# Effects, weights, a solver of weighted trees, the regime and its value: the chain of Behrouz and others (2022).

#' The best tree of rewards that are estimated from outcomes and treatments, and its held-out value.
weighted_tree <- function(X, Y, W, method = c("dr", "ipw", "regression", "matching"),
                          solver = c("direct", "duplication", "sampling"), guesses = NULL, depth = 2,
                          min.node.size = NULL, propensity = NULL, direction = c("maximize", "minimize"), value = TRUE,
                          n.repeats = 5, seed = 0, verbose = FALSE, ...) {
  method <- match.arg(method)
  solver <- match.arg(solver)
  direction <- match.arg(direction)
  X <- numeric_matrix(X, "X")
  Y <- numeric_matrix(Y, "Y")
  if (ncol(Y) != 1) stop("Y has ", ncol(Y), " columns; give one outcome for every row of X.", call. = FALSE)
  W <- as.character(W)
  for (given in list(c("Y", nrow(Y)), c("W", length(W)))) {
    if (as.integer(given[2]) != nrow(X)) {
      stop("X has ", nrow(X), " rows and ", given[1], " ", given[2], "; give one for every row of X.", call. = FALSE)
    }
  }
  if (anyNA(W)) stop("W has missing values; leave these rows out.", call. = FALSE)
  depth <- whole_number(depth, "depth", 0)
  n.repeats <- whole_number(n.repeats, "n.repeats", 1)
  seed <- whole_number(seed, "seed", 0)
  least <- if (is.null(min.node.size)) "auto" else whole_number(min.node.size, "min.node.size", 1)
  chances <- chances_of(propensity, unique(W))

  policytree <- python_module()
  model <- in_python(policytree$DRPolicyTree(
    max_depth = depth, min_samples_leaf = least, min_samples_per_treatment = if (least == "auto") "auto" else 0L,
    method = method, solver = solver, guesses = if (identical(guesses, "all")) "all" else if (length(guesses)) as.list(guesses), direction = direction,
    random_state = seed, verbose = as.integer(isTRUE(verbose)), ...
  ))
  outcome <- python_numbers(Y)
  treatment <- reticulate::r_to_py(as.list(W))
  table <- python_table(X, "X")
  in_python(model$fit(outcome, treatment, X = table, propensity = chances))
  labels <- as.character(unlist(reticulate::py_to_r(model$treatments_$tolist())))
  tree <- plain_tree(model, X, X, labels)
  tree$method <- method
  tree$solver <- solver
  tree$rewards <- matrix(
    unlist(reticulate::py_to_r(model$tree_rewards_$to_numpy()$ravel(order = "F")$tolist())), nrow(X),
    dimnames = list(NULL, labels)
  )
  certificate <- reticulate::import("policytree.estimators.certificate", convert = FALSE)
  stated <- certificate$stated_guarantees(model$solution_, maximize = direction == "maximize")
  tree$guarantees <- reticulate::py_to_r(stated)
  if (isTRUE(value)) {
    found <- in_python(policytree$cross_val_policy_value(
      model, outcome, treatment, X = table, propensity = chances, n_repeats = n.repeats, random_state = seed
    ))
    frame <- found$to_frame()
    column <- function(name) unlist(reticulate::py_to_r(reticulate::py_get_item(frame, name)$tolist()))
    tree$value <- data.frame(
      value = column("value"), standard.error = column("standard_error"), lower = column("lower"),
      upper = column("upper"), row.names = unlist(reticulate::py_to_r(frame$index$tolist()))
    )
    tree$verdict <- paste(reticulate::py_str(found$verdict), collapse = "\n")
  }
  structure(tree, class = c("weighted_tree", "policy_tree"))
}

# Known chances of treatment as Python takes them: one number, or one for every label.
chances_of <- function(propensity, labels) {
  if (is.null(propensity)) {
    return(NULL)
  }
  if (!is.numeric(propensity) || anyNA(propensity)) stop("propensity must be numbers, or NULL.", call. = FALSE)
  if (length(propensity) == 1 && is.null(names(propensity))) {
    return(as.double(propensity))
  }
  if (!setequal(names(propensity), labels)) {
    stop("propensity must be named by the treatments, ", paste(sort(labels), collapse = ", "), ".", call. = FALSE)
  }
  reticulate::py_dict(as.list(names(propensity)), as.list(as.double(propensity)), convert = FALSE)
}

#' The tree as text, its rewards and solver, and its held-out value.
print.weighted_tree <- function(x, ...) {
  NextMethod()
  cat("Rewards: ", x$method, ", solver: ", x$solver, "\n", sep = "")
  if (!is.null(x$value)) {
    cat("Held-out values:\n")
    print(format(x$value, digits = 4))
    cat(x$verdict, "\n", sep = "")
  }
  invisible(x)
}
