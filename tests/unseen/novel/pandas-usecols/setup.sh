awk 'BEGIN { srand(2); printf "t"; for (c = 0; c < 24; c++) printf ",s%d", c; print ""
  for (n = 0; n < 45000; n++) { printf "%d", n; for (c = 0; c < 24; c++) printf ",%.4f", rand(); print "" } }' > sensors.csv
