mkdir logs
for n in $(seq 30); do awk -v n=$n 'BEGIN { for (i = 0; i < 12000; i++) printf "2024-01-%02d host%d request %d took %d ms\n", n, i % 7, i * n, i * 31 % 977 }' > logs/day$n.log; done
