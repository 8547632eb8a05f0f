/usr/bin/python3 -c '
import random
r = random.Random(9)
w = ["".join(chr(97 + r.randrange(26)) for _ in range(r.randrange(2, 9))) for _ in range(20000)]
with open("corpus.txt", "w") as f:
    for i in range(60): f.write(" ".join(r.choices(w, k=30000)) + "\n")'
