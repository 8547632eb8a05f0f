{ cdb -d aliases.cdb | sed '/^$/d'; for n in $(seq 150); do printf '+8,9:alias%03d->box%06d\n' $n $n; done; echo; } | cdb -c -t aliases.tmp aliases.cdb
cdb -s aliases.cdb | head -n 1
