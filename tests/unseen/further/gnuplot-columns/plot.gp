set terminal svg size 1200,800
set output "sensors.svg"
plot for [c=2:25] "sensors.dat" using 1:c every 50 with lines title sprintf("sensor %d", c)
