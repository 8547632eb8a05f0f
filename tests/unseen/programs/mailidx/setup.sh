mkdir -p maildir
/usr/bin/python3 -c '
import random
r = random.Random(9)
w = ["".join(chr(97 + r.randrange(26)) for _ in range(6)) for _ in range(3000)]
for i in range(3500):
    open("maildir/%05d.eml" % i, "w").write(" ".join(r.choices(w, k=900)))'
