skip_without_python <- function() {
  skip_if_not(reticulate::py_module_available("policytree"), "Python's package policytree is not installed")
}

# The best total reward by trying every tree.
best_reward <- function(X, Gamma, depth, least = 1) {
  if (nrow(X) < least) return(-Inf)
  best <- max(colSums(Gamma))
  if (depth == 0) return(best)
  for (j in seq_len(ncol(X))) for (cut in unique(X[, j])) {
    left <- X[, j] <= cut
    if (sum(left) < least || sum(!left) < least) next
    best <- max(best, best_reward(X[left, , drop = FALSE], Gamma[left, , drop = FALSE], depth - 1, least) +
                  best_reward(X[!left, , drop = FALSE], Gamma[!left, , drop = FALSE], depth - 1, least))
  }
  best
}

reward_of <- function(tree, X, Gamma) sum(Gamma[cbind(seq_len(nrow(X)), predict(tree, X))])
