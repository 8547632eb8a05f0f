/usr/bin/python3 - <<'P'
import os, random
r = random.Random(5)
os.mkdir("spam")
for n in range(220):
    with open(f"spam/{n:04}", "w") as f:
        f.write(f"From: sender{n % 40}@example.com\nTo: me@example.com\nSubject: offer {n}\nMessage-ID: <{n}@example.com>\n\n")
        for _ in range(r.randrange(5, 40)):
            f.write(" ".join("word%d" % r.randrange(5000) for _ in range(10)) + "\n")
P
