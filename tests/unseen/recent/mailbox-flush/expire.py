"""Removes what has been read from the mbox of the lists."""
import mailbox
import sys

each = len(sys.argv) < 2
box = mailbox.mbox("lists")
box.lock()
for n, key in enumerate(box.keys()):
    if n % 7 == 3:
        box.remove(key)
        if each:
            box.flush()
box.flush()
box.unlock()
box.close()
print(len(mailbox.mbox("lists")))
