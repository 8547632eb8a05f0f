/usr/bin/python3 - <<P
import random
r = random.Random(5)
with open("inbox.mbox", "w") as f:
    for n in range(600):
        f.write(f"From sender{n % 40}@example.com Mon Nov 23 10:{n // 60 % 60:02}:{n % 60:02} 2026\\nFrom: sender{n % 40}@example.com\\nTo: me@example.com\\nSubject: message {n}\\nDate: Mon, 23 Nov 2026 10:{n // 60 % 60:02}:{n % 60:02} +0000\\nMessage-ID: <{n}@example.com>\\n\\n")
        for _ in range(r.randrange(5, 60)):
            f.write(" ".join("word%d" % r.randrange(5000) for _ in range(10)) + "\\n")
        f.write("\\n")
P
cat > fdm.conf <<C
set lock-file "$PWD/fdm.lock"
set lock-types flock
account "in" mbox "$PWD/inbox.mbox"
action "box" maildir "$PWD/Maildir"
match all action "box"
C
chmod 600 fdm.conf
chmod 666 inbox.mbox
mkdir -m 1777 spool
