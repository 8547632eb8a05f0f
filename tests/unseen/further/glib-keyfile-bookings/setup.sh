for n in $(seq 0 39); do printf '[room%d]\nbeds=2\n\n' $n; done > bookings.ini
