import json, sys
import plyvel

db = plyvel.DB("sessions", create_if_missing=True)
rows = [(b"session:%06d" % n, json.dumps({"user": n % 700, "page": n * 17 % 1000}).encode()) for n in range(2500)]
if sys.argv[1] == "each":
    for key, value in rows:
        db.put(key, value, sync=True)
else:
    for at in range(0, len(rows), 100):
        with db.write_batch(sync=True) as batch:
            for key, value in rows[at : at + 100]:
                batch.put(key, value)
print(sum(1 for _ in db))
db.close()
