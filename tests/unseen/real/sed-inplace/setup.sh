seq 1 800000 | sed 's/$/ some configuration text with words/' > big.txt
