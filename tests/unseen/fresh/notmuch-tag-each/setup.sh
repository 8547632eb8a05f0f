/usr/bin/python3 - <<'P'
import os, random
r = random.Random(5)
for d in ("cur", "new", "tmp"):
    os.makedirs("mail/" + d)
for n in range(1500):
    with open(f"mail/cur/1700{n:06}.host:2,S", "w") as f:
        f.write(f"From: sender{n % 40}@example.com\nTo: me@example.com\nSubject: {'invoice' if n % 9 == 0 else 'message'} {n}\nDate: Mon, 23 Nov 2026 10:{n // 60 % 60:02}:{n % 60:02} +0000\nMessage-ID: <m{n}@example.com>\n\n")
        for _ in range(r.randrange(5, 30)):
            f.write(" ".join("word%d" % r.randrange(5000) for _ in range(10)) + "\n")
P
cat > config <<C
[database]
path=$PWD/mail
[user]
name=Me
primary_email=me@example.com
[new]
tags=inbox
[maildir]
synchronize_flags=false
C
NOTMUCH_CONFIG=$PWD/config notmuch new --quiet
seq 0 9 1499 > invoices
