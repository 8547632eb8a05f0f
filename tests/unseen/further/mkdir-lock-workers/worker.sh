# numbers for the invoices come from a counter behind a lock
for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
  until mkdir counter.lock 2> /dev/null; do :; done
  read -r next < counter
  sleep 0.03
  echo $((next + 1)) > counter
  rmdir counter.lock
done
