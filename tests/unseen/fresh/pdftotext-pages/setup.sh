/usr/bin/python3 - <<'P'
import random
r = random.Random(3)
objects = ["<< /Type /Catalog /Pages 2 0 R >>", None, "<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>"]
kids = []
for n in range(400):
    lines = "".join(f"({' '.join('term%d' % r.randrange(4000) for _ in range(9))}) ' " for _ in range(50))
    text = f"BT /F 9 Tf 14 TL 40 800 Td {lines}ET"
    objects.append(f"<< /Length {len(text)} >>\nstream\n{text}\nendstream")
    objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {len(objects)} 0 R /Resources << /Font << /F 3 0 R >> >> >>")
    kids.append(f"{len(objects)} 0 R")
objects[1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(kids)}] >>"
out, at = b"%PDF-1.4\n", []
for n, o in enumerate(objects, 1):
    at.append(len(out))
    out += f"{n} 0 obj\n{o}\nendobj\n".encode()
xref = len(out)
out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode() + b"".join(b"%010d 00000 n \n" % a for a in at)
out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{xref}\n%%EOF\n".encode()
open("manual.pdf", "wb").write(out)
P
