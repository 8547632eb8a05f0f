export HGRCPATH=/dev/null
hg init main && cd main
for r in $(seq 4); do
  for n in $(seq 500); do mkdir -p d$((n % 20)); awk -v r=$r -v n=$n 'BEGIN { for (i = 0; i < 60; i++) print "line", i, n * i, i % 7 == r ? r : 0 }' > d$((n % 20))/f$n.txt; done
  hg commit -q -A -u me -m "state $r"
done
