/usr/bin/python3 - <<P
import random
r = random.Random(5)
with open("inbox.mbox", "w") as f:
    for n in range(15000):
        f.write(f"From sender{n % 40}@example.com Mon Nov 23 10:{n // 60 % 60:02}:{n % 60:02} 2026\\nFrom: sender{n % 40}@example.com\\nTo: me@example.com\\nSubject: message {n}\\nDate: Mon, 23 Nov 2026 10:{n // 60 % 60:02}:{n % 60:02} +0000\\nMessage-ID: <{n}@example.com>\\n\\n")
        for _ in range(r.randrange(5, 60)):
            f.write(" ".join("word%d" % r.randrange(5000) for _ in range(10)) + "\\n")
        f.write("\\n")
P
cat > dovecot.conf <<C
base_dir = $PWD/run
state_dir = $PWD/state
log_path = $PWD/dovecot.log
mail_location = mdbox:$PWD/store
mail_home = $PWD/home
mail_uid = nobody
mail_gid = nogroup
first_valid_uid = 1
first_valid_gid = 1
ssl = no
stats_writer_socket_path =
default_internal_user = nobody
default_internal_group = nogroup
mail_fsync = optimized
C
mkdir home run state mail store in
mv inbox.mbox in
chown nobody:nogroup home run state mail store in in/inbox.mbox
