python3 - <<'P'
import random
random.seed(3)
with open("in", "w") as f:
    for i in range(1500000): f.write("%016x the rest of the line %d\n" % (random.getrandbits(64), i))
P
mkdir tmp
