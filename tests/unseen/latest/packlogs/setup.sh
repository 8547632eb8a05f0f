mkdir logs
for n in 1 2 3; do seq $n $((n + 1500000)) | sed 's/.*/request & GET \/page\/& 200 ok/' > logs/day$n.log; done
