pids=
for worker in 1 2 3 4; do
  Rscript --vanilla fold.R $worker & pids="$pids $!"
done
for p in $pids; do wait "$p" || exit 1; done
Rscript --vanilla -e 'cat(length(readRDS("results.rds")), "of 240 folds\n")'
