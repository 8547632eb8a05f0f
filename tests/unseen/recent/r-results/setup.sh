Rscript --vanilla -e 'saveRDS(list(), "results.rds")'
