python3 - <<'P'
import os, random
random.seed(7)
words = [("%x" % random.getrandbits(40)) for _ in range(5000)]
for i in range(3000):
    d = f"tree/d{i % 50}"
    os.makedirs(d, exist_ok=True)
    open(f"{d}/f{i}.txt", "w").write("\n".join(" ".join(random.choices(words, k=10)) for _ in range(20)))
P
git init -q .; git config user.name n; git config user.email n@n; git config gc.auto 0
