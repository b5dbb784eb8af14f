#' Actions or leaves of new rows.
predict.policy_tree <- function(object, newdata, type = c("action.id", "node.id"), ...) {
  type <- match.arg(type)
  newdata <- numeric_matrix(newdata, "newdata")
  if (ncol(newdata) != object$n.features) {
    stop("newdata has ", ncol(newdata), " columns, but the tree was fitted to ", object$n.features, ".", call. = FALSE)
  }
  at <- rep(1L, nrow(newdata))
  repeat {
    moved <- FALSE
    for (i in unique(at)) {
      node <- object$nodes[[i]]
      if (!node$is_leaf) {
        rows <- which(at == i)
        goes_left <- newdata[rows, node$split_variable] <= node$split_value
        at[rows] <- ifelse(goes_left, node$left_child, node$right_child)
        moved <- TRUE
      }
    }
    if (!moved) break
  }
  if (type == "node.id") at else vapply(object$nodes[at], function(node) node$action, integer(1))
}

#' The tree as text.
print.policy_tree <- function(x, ...) {
  cat("policy_tree object\n")
  cat("Tree depth: ", x$depth, "\n")
  cat("Actions: ", paste0(seq_len(x$n.actions), ": ", x$action.names), "\n")
  cat("Variable splits:\n")
  show <- function(i, level) {
    node <- x$nodes[[i]]
    cat(strrep("  ", level), "(", i, ") ", sep = "")
    if (node$is_leaf) {
      cat("* action:", node$action, "\n")
    } else {
      cat("split_variable:", x$columns[node$split_variable], " split_value:", format(node$split_value, digits = 7), "\n")
      show(node$left_child, level + 1)
      show(node$right_child, level + 1)
    }
  }
  show(1, 0)
  cat("Search: ", x$status, ", gap ", format(x$optimality.gap, digits = 3), "\n", sep = "")
  invisible(x)
}

#' The tree as a picture.
plot.policy_tree <- function(x, leaf.labels = NULL, ...) {
  labels <- if (is.null(leaf.labels)) x$action.names else leaf.labels
  if (length(labels) != x$n.actions) {
    stop("leaf.labels has ", length(labels), " entries; give one for each of the ", x$n.actions, " actions.", call. = FALSE)
  }
  leaves <- 0
  draw <- list()
  place <- function(i, level) {
    node <- x$nodes[[i]]
    if (node$is_leaf) {
      leaves <<- leaves + 1
      across <- leaves
    } else {
      below <- c(place(node$left_child, level + 1), place(node$right_child, level + 1))
      across <- mean(below)
      draw[[length(draw) + 1]] <<- list(from = across, to = below, level = level)
    }
    label <- if (node$is_leaf) labels[node$action] else
      paste(x$columns[node$split_variable], "<=", format(node$split_value, digits = 4))
    draw[[length(draw) + 1]] <<- list(at = across, level = level, label = label, font = if (node$is_leaf) 2 else 1)
    across
  }
  place(1, 0)
  old <- par(mar = c(0.5, 0.5, 0.5, 0.5))
  on.exit(par(old))
  plot.new()
  plot.window(xlim = c(0.5, leaves + 0.5), ylim = c(-x$depth - 0.4, 0.4))
  for (each in draw) {
    if (!is.null(each$to)) {
      segments(each$from, -each$level - 0.12, each$to, -each$level - 0.88)
      text((each$from + each$to) / 2, -each$level - 0.45, c("yes", "no"), pos = c(2, 4), cex = 0.8)
    } else {
      text(each$at, -each$level, each$label, font = each$font, ...)
    }
  }
  invisible(x)
}
