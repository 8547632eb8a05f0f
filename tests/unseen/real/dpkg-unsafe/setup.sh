python3 - <<'P'
import os, random
random.seed(7)
words = [("%x" % random.getrandbits(40)) for _ in range(5000)]
for i in range(800):
    d = f"tree/d{i % 50}"
    os.makedirs(d, exist_ok=True)
    open(f"{d}/f{i}.txt", "w").write("\n".join(" ".join(random.choices(words, k=10)) for _ in range(10)))
P
mkdir -p pkg/DEBIAN pkg/usr/share; mv tree pkg/usr/share/blindpkg
printf 'Package: blindpkg\nVersion: 1\nArchitecture: all\nMaintainer: n <n@n>\nDescription: x\n' > pkg/DEBIAN/control
dpkg-deb -Znone -b pkg b.deb
mkdir -p root/var/lib/dpkg/info root/var/lib/dpkg/updates root/var/lib/dpkg/triggers; : > root/var/lib/dpkg/status; : > root/var/lib/dpkg/available
