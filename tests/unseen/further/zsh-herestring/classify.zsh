#!/bin/zsh
# the third word of each line of the log, by severity
typeset -A count
while read -r line; do
  read -r day host level rest <<< "$line"
  (( count[$level]++ ))
done < app.log
for level in ${(k)count}; do print "$level $count[$level]"; done
