awk 'BEGIN { print "%rec: Loan\n%key: Id\n"; for (n = 1; n <= 300; n++) printf "Id: %d\nBook: %d\nReader: Reader %d\n\n", n, n * 7, n % 50 }' > loans.rec
