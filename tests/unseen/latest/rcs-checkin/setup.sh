seq 1 400 | sed 's/.*/host&  IN  A  10.0.0.&/' > zone.db
ci -q -l -i -t-zone zone.db
