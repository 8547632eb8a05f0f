/usr/bin/python3 -c '
import random
r = random.Random(9)
with open("big.log", "w") as f:
    for i in range(200):
        f.write("".join("%08d %s something happened %d\n" % (j, r.choice(("INFO", "WARN", "ERROR")), j) for j in range(20000)))'
