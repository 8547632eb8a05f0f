mkdir site
for d in $(seq 40); do mkdir site/part$d; for n in $(seq 50); do echo "page $d $n" > site/part$d/page$n.md; done; done
