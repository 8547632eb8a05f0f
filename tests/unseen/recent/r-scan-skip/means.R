# Mean of each block of 200 measurements, without the whole file in memory.
block <- 200
means <- c()
skip <- 0
repeat {
  part <- tryCatch(read.table("series.txt", skip = skip, nrows = block),
                   error = function(e) NULL)
  if (is.null(part)) break
  means <- c(means, mean(part$V2))
  skip <- skip + block
}
cat(length(means), "blocks", round(sum(means), 2), "\n")
