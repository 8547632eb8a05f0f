exec Rscript --vanilla once.R
