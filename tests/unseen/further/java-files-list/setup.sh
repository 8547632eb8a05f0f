for n in $(seq 0 24); do mkdir -p inbox/client$n; for d in $(seq 12); do echo "<doc n='$d'/>" > inbox/client$n/$d.xml; done; done
