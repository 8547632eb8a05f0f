/usr/bin/python3 - <<'P'
import random
r = random.Random(6)
with open("town.osm", "w") as f:
    f.write('<osm version="0.6">\n')
    nodes = list(range(1, 600001))
    r.shuffle(nodes)
    for n in nodes:
        f.write(f'<node id="{n}" version="1" timestamp="2026-01-01T00:00:00Z" lat="{r.uniform(50, 51):.7f}" lon="{r.uniform(7, 8):.7f}"/>\n')
    for w in range(1, 60001):
        f.write(f'<way id="{w}" version="1" timestamp="2026-01-01T00:00:00Z">' + "".join(f'<nd ref="{r.randrange(1, 600001)}"/>' for _ in range(8)) + '<tag k="highway" v="residential"/></way>\n')
    f.write("</osm>\n")
P
