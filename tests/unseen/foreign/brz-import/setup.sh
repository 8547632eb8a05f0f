export PATH=/usr/bin:/bin
mkdir tree
cd tree
HOME=$PWD/.. brz init -q
for d in 1 2 3 4 5 6 7 8; do mkdir part$d; done
awk 'BEGIN { for (d = 1; d <= 8; d++) for (n = 1; n <= 500; n++) { f = "part" d "/chapter" n ".txt"; for (i = n; i <= n + 300; i++) print i * d > f; close(f) } }'
