/usr/bin/python3 -c '
import os, random
r = random.Random(9)
for i in range(1200):
    os.makedirs("tree/d%02d" % (i % 30), exist_ok=True)
    open("tree/d%02d/f%04d.c" % (i % 30, i), "wb").write(bytes(r.choices(b"int main(){}\n ", k=30000)))'
