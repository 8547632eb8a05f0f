/usr/bin/python3 - <<'P'
import random
r = random.Random(1)
w = "prize winner free meeting invoice regards alpha beta gamma delta omega house tree river".split()
with open("inbox.mbox", "w") as f:
    for i in range(2000):
        f.write(f"From: a{i}@example.org\nSubject: {r.choice(w)}\n\n" + " ".join(r.choices(w, k=150)) + "\n\n\n")
P
