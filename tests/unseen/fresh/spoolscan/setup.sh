mkdir boxes archive
for n in $(seq 150); do mkdir boxes/tenant$n; done
