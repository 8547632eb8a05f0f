mkdir -p logs
/usr/bin/python3 -c '
import random
r = random.Random(9)
for i in range(12):
    b = bytes(r.choices(b"0123456789 GET POST index html\n", k=1 << 20))
    with open("logs/day%02d.log" % i, "wb") as f:
        for j in range(4): f.write(b)'
