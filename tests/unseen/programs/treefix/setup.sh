/usr/bin/python3 -c '
import os
for d in range(140):
    os.makedirs("htdocs/dir%02d" % d, exist_ok=True)
    for i in range(120): open("htdocs/dir%02d/page%03d.html" % (d, i), "w").write("x" * 200)'
