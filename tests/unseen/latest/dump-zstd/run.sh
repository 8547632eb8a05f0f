# the dump must not push the database out of the page cache
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do cat part.sql; done | dd of=dump.sql bs=1M iflag=fullblock oflag=nocache conv=fdatasync status=none
zstd -q -1 -T2 -f dump.sql -o dump.sql.zst && sync dump.sql.zst && rm dump.sql
sync .
