# The search is Python's; what it finds becomes a plain R object, so that a saved tree needs no Python.

#' Fit the best tree of a depth: arguments of the R package policytree, search of the Python package.
policy_tree <- function(X, Gamma, depth = 2, split.step = 1, min.node.size = 1, verbose = TRUE, ...) {
  X <- numeric_matrix(X, "X")
  Gamma <- numeric_matrix(Gamma, "Gamma")
  if (nrow(X) != nrow(Gamma)) {
    stop("X has ", nrow(X), " rows and Gamma ", nrow(Gamma), "; give a row of scores for every row of X.", call. = FALSE)
  }
  depth <- whole_number(depth, "depth", 0)
  split.step <- whole_number(split.step, "split.step", 1)
  min.node.size <- whole_number(min.node.size, "min.node.size", 1)

  searched <- if (split.step == 1L) X else thinned(X, split.step)
  model <- python_module()$PolicyTree(
    max_depth = depth, min_samples_leaf = min.node.size, verbose = as.integer(isTRUE(verbose)), ...
  )
  in_python(model$fit(python_table(searched, "X"), python_table(Gamma, "")))
  plain_tree(model, X, searched, column_names(Gamma, ""))
}

# A fitted estimator of Python as a plain R object; X as the user has it, and as it was searched.
plain_tree <- function(model, X, searched, labels) {
  tree <- model$tree_
  part <- function(name) unlist(reticulate::py_to_r(reticulate::py_get_attr(tree, name)$tolist()))
  action <- match(as.character(unlist(reticulate::py_to_r(model$treatments_$tolist()))), labels)[part("action") + 1]
  nodes <- level_order(
    part("children_left"), part("children_right"), part("feature"), part("threshold"), action, X, searched
  )
  structure(
    list(
      nodes = nodes,
      depth = reticulate::py_to_r(model$get_depth()),
      n.actions = length(labels),
      n.features = ncol(X),
      action.names = labels,
      columns = column_names(X, "X"),
      status = reticulate::py_to_r(model$status_$value),
      optimality.gap = reticulate::py_to_r(model$optimality_gap_),
      certificate = paste(reticulate::py_str(model$certificate()), collapse = "\n")
    ),
    class = "policy_tree"
  )
}

numeric_matrix <- function(x, name) {
  x <- tryCatch(as.matrix(x), error = function(e) NULL)
  if (is.null(x) || !(is.numeric(x) || is.logical(x)) || !length(x)) {
    stop(name, " is no matrix of numbers; recode other columns, for example by model.matrix().", call. = FALSE)
  }
  if (anyDuplicated(colnames(x))) {
    stop(name, " has two columns named ", colnames(x)[anyDuplicated(colnames(x))], "; rename one.", call. = FALSE)
  }
  if (anyNA(x) || any(is.infinite(x))) {
    stop(name, " has missing or infinite values; impute them, or fit in Python, where trees split on missing values.",
         call. = FALSE)
  }
  storage.mode(x) <- "double"
  x
}

whole_number <- function(x, name, least) {
  if (!is.numeric(x) || length(x) != 1 || is.na(x) || x != round(x) || x < least || x > .Machine$integer.max) {
    stop(name, " must be a whole number of at least ", least, ".", call. = FALSE)
  }
  as.integer(x)
}

# Every split.step-th value of a sorted column may be a split; a row's code is the number of such values below its own.
thinned <- function(X, split.step) {
  X[] <- apply(X, 2, function(x) {
    at <- seq.int(split.step, max(split.step, length(x)), by = split.step)
    cuts <- unique(sort(x)[at[at <= length(x)]])
    as.double(findInterval(x, cuts, left.open = TRUE))
  })
  X
}

python_module <- function() {
  if (!reticulate::py_module_available("policytree")) {
    stop("Python's package policytree was not found; install it and name that Python by reticulate::use_python() or the ",
         "environment variable RETICULATE_PYTHON.", call. = FALSE)
  }
  reticulate::import("policytree", convert = FALSE)
}

# Bytes, since older releases of reticulate do not know the arrays of newer releases of numpy.
python_numbers <- function(x) {
  reticulate::import("numpy", convert = FALSE)$frombuffer(writeBin(as.vector(x), raw()), dtype = "float64")
}

python_table <- function(x, prefix) {
  numpy <- reticulate::import("numpy", convert = FALSE)
  columns <- lapply(seq_len(ncol(x)), function(j) python_numbers(x[, j]))
  names <- as.list(column_names(x, prefix))
  reticulate::import("pandas", convert = FALSE)$DataFrame(numpy$column_stack(columns), columns = names)
}

column_names <- function(x, prefix) {
  if (is.null(colnames(x))) paste0(prefix, seq_len(ncol(x))) else colnames(x)
}

# Python's sentence about what it cannot use, as R's error.
in_python <- function(call) {
  tryCatch(call, error = function(e) {
    stop(sub("^[\\w.]*InputError: ", "", conditionMessage(e), perl = TRUE), call. = FALSE)
  })
}

# Nodes from the root, level by level, as the R package policytree numbers them.
level_order <- function(left, right, feature, threshold, action, X, searched) {
  waiting <- 0L
  order <- integer()
  while (length(waiting)) {
    order <- c(order, waiting)
    inner <- waiting[left[waiting + 1] >= 0]
    waiting <- as.vector(rbind(left[inner + 1], right[inner + 1]))
  }
  place <- match(seq_along(left) - 1L, order)
  lapply(order + 1, function(i) {
    if (left[i] < 0) {
      return(list(is_leaf = TRUE, action = action[i]))
    }
    j <- feature[i] + 1L
    list(
      is_leaf = FALSE,
      split_variable = j,
      split_value = max(X[searched[, j] <= threshold[i], j]),
      left_child = place[left[i] + 1],
      right_child = place[right[i] + 1]
    )
  })
}
