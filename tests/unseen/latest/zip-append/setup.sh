mkdir reports
i=0
while [ $i -lt 120 ]; do head -c 300000 /dev/urandom > reports/r$i.pdf; i=$((i + 1)); done
