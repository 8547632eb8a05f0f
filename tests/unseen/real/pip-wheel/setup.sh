set -e
python3 -m venv venv
python3 - <<'P'
import zipfile
z = zipfile.ZipFile("blindpkg-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED)
rec = []
def add(n, t): z.writestr(n, t); rec.append(n + ",,")
for i in range(250):
    add(f"blindpkg/m{i}.py", "\n".join(f"def f{k}(x):\n    return x + {k * i}" for k in range(30)) + "\n")
add("blindpkg/__init__.py", "")
d = "blindpkg-1.0.dist-info/"
add(d + "METADATA", "Metadata-Version: 2.1\nName: blindpkg\nVersion: 1.0\n")
add(d + "WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
rec.append(d + "RECORD,,"); z.writestr(d + "RECORD", "\n".join(rec) + "\n"); z.close()
P
