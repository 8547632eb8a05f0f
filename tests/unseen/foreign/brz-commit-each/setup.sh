export PATH=/usr/bin:/bin
mkdir tree
cd tree
HOME=$PWD/.. brz init -q
n=1
while [ $n -le 12 ]; do seq $n $((n + 300)) > chapter$n.txt; n=$((n + 1)); done
