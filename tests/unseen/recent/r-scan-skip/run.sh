exec Rscript --vanilla means.R
