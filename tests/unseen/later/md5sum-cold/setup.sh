/usr/bin/python3 - <<'P'
import os
for d in range(60):
    os.makedirs("tree/d%d" % d)
    for f in range(100):
        with open("tree/d%d/f%d" % (d, f), "wb") as out: out.write(os.urandom(2000 + (d * 37 + f * 91) % 9000))
P
find tree -type f | sort | xargs md5sum > sums
