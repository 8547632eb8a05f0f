mkdir -p src obj
/usr/bin/python3 - <<'P'
import random
r = random.Random(2)
for h in range(60):
    open(f"src/h{h}.h", "w").write(f"extern int v{h};\n" * 40)
for s in range(2600):
    hs = r.sample(range(60), 30)
    open(f"src/s{s}.c", "w").write("".join(f'#include "h{h}.h"\n' for h in hs) + "int f%d;\n" % s)
for s in range(2600):
    open(f"obj/s{s}.o", "w").write("obj" * 100)
P
