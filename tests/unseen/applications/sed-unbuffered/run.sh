stdbuf -o0 sed p in > out
