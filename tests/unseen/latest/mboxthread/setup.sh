python3 - <<'P'
import random, struct
r = random.Random(21)
order = []
with open("mbox", "wb") as f:
    at = 0
    for n in range(40000):
        mail = b"From a@example.org\nSubject: %d\n\n" % n + r.randbytes(r.randrange(4000, 16000)).hex().encode()[:12000]
        f.write(mail)
        order.append((n * 7919 % 3001, at, min(len(mail), 2048)))
        at += len(mail)
order.sort()
with open("threads", "wb") as f:
    for _, at, length in order:
        f.write(struct.pack("<QI", at, length))
P
