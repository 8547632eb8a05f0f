#!/bin/zsh
typeset -A count
while read -r day host level rest; do
  (( count[$level]++ ))
done < app.log
for level in ${(k)count}; do print "$level $count[$level]"; done
