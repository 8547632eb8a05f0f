# Mean of each block of 200 measurements, without the whole file in memory.
block <- 200
means <- c()
input <- file("series.txt", "r")
repeat {
  part <- tryCatch(read.table(input, nrows = block),
                   error = function(e) NULL)
  if (is.null(part)) break
  means <- c(means, mean(part$V2))
}
cat(length(means), "blocks", round(sum(means), 2), "\n")
