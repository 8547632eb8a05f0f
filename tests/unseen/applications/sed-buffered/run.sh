sed p in > out
