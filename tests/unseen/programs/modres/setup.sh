/usr/bin/python3 - <<'P'
import os, random
r = random.Random(2)
os.makedirs("src", exist_ok=True)
names = []
for l in range(40):
    os.makedirs(f"inc/lib{l}/lib{l}", exist_ok=True)
    for h in range(12):
        open(f"inc/lib{l}/lib{l}/h{h}.h", "w").write("int x;\n")
        names.append(f"lib{l}/h{h}.h")
for s in range(1000):
    open(f"src/s{s}.c", "w").write("".join(f"#include <{n}>\n" for n in r.sample(names, 20)))
P
