/usr/bin/python3 - <<'P'
import os
import random
r = random.Random(5)
for d in ("cur", "new", "tmp"):
    os.makedirs("Maildir/" + d)
for n in sorted(range(9000), key=lambda n: n * 7919 % 9001):
    with open(f"Maildir/cur/1700{n:06}.{n * 31337 % 99991}.host:2,S", "w") as f:
        f.write(f"From: sender{n % 40}@example.com\nTo: me@example.com\nSubject: message {n}\nDate: Mon, 23 Nov 2026 10:{n // 60 % 60:02}:{n % 60:02} +0000\nMessage-ID: <{n}@example.com>\n\n")
        for _ in range(r.randrange(5, 60)):
            f.write(" ".join("word%d" % r.randrange(5000) for _ in range(10)) + "\n")
P
cat > mairixrc <<C
base=$PWD
maildir=Maildir
mfolder=found
database=$PWD/mairix.db
C
