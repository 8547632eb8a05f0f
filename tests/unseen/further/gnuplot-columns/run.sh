exec gnuplot plot.gp
