exec md5sum --check --quiet sums
