sort -S 1M --parallel=1 -T tmp -o out in
