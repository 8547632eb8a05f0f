# Fits one fold and adds its score to the results of all.
worker <- as.integer(commandArgs(TRUE)[1])
set.seed(worker)
tmp <- paste0("results.", worker)
for (fold in 1:60) {
  x <- matrix(rnorm(4000), ncol = 4)
  y <- x %*% c(1, 2, 0, -1) + rnorm(1000)
  score <- summary(lm(y ~ x))$r.squared
  results <- readRDS("results.rds")
  results[[length(results) + 1]] <- list(worker = worker, fold = fold, score = score)
  saveRDS(results, tmp)
  file.rename(tmp, "results.rds")
}
