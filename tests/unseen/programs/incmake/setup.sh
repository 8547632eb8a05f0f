mkdir -p src obj
/usr/bin/python3 -c '
import random
r = random.Random(9)
for i in range(1500):
    open("src/t%04d.txt" % i, "wb").write(bytes(r.choices(b"abcdefgh \n", k=2000)) * 100)
    if i % 6: open("obj/t%04d.gz" % i, "wb").write(b"x" * 5000)'
