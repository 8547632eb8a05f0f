gcc -O2 -o ledger ledger.c
