/usr/bin/python3 - <<'P'
import json, os
os.makedirs("inbox")
seen = {}
for i in range(4000):
    with open("inbox/feed%04d" % i, "w") as f:
        f.write("etag: e%d\nlang: en\n\n" % i + "some words of the feed \n" * (50 + i % 90))
    if i % 10 != 3: seen["feed%04d" % i] = "e%d" % i
json.dump(seen, open("seen.json", "w"))
P
