i=0; while [ $i -lt 400 ]; do printf "article-%d\t100\n" $i; i=$((i+1)); done > stock.txt
