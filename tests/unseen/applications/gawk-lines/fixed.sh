gawk '{print $1, NR}' in > out
