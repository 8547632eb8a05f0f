stdbuf -oL sort -r in > out
