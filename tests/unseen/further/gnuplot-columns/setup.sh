awk 'BEGIN { for (n = 0; n < 150000; n++) { printf "%d", n; for (c = 0; c < 24; c++) printf " %.4f", sin(n / 1000 + c) + c; print "" } }' > sensors.dat
