ostree init --repo=repo --mode=archive
mkdir tree
for d in $(seq 20); do mkdir tree/d$d; for n in $(seq 60); do echo "file $n of $d" > tree/d$d/f$n; done; done
