# thin once, plot the thinned table
awk 'NR % 50 == 1' sensors.dat > thin.dat
sed 's/sensors.dat/thin.dat/; s/ every 50//' plot.gp > thin.gp
exec gnuplot thin.gp
