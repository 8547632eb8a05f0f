sort -r in > out
