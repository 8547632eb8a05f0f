awk 'BEGIN { print "%rec: Book\n%key: Id\n"; for (n = 1; n <= 300; n++) printf "Id: %d\nTitle: The book of number %d\nAuthor: Author %d\nShelf: %d\n\n", n, n, n % 90, n % 40 }' > books.rec
