mkdir tmp
mkdir inventory
for h in $(seq 150); do { echo '{"host": "h'$h'", "disks": ['; for n in $(seq 60); do echo '{"serial": "s'$h-$n'", "hours": '$((n * 100))'},'; done; echo '{"serial": "last", "hours": 0}]}'; } > inventory/h$h.json; done
