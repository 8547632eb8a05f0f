"""Leases of addresses in a tdb, as Samba and others keep their state."""
import os
import sys
import tdb

batch = int(sys.argv[1])
db = tdb.open("leases.tdb", flags=os.O_RDWR | os.O_CREAT)
for start in range(0, 500, batch):
    db.transaction_start()
    for n in range(start, start + batch):
        db[b"lease/10.0.%d.%d" % (n // 250, n % 250)] = b"00:16:3e:%02x:%02x:01 expires %d" % (n // 256, n % 256, 1700000000 + n)
    db.transaction_prepare_commit()
    db.transaction_commit()
db.close()
print("500 leases")
