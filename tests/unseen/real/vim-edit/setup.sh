seq 1 1500000 | sed 's/$/ some configuration text with words/' > big.txt
