mkdir reports; for m in 01 02 03 04 05 06 07 08 09 10 11 12; do echo old > reports/month-$m; done
