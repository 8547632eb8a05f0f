# forms of ten pages
/usr/bin/python3 - <<'P'
def pdf(n, pages=10):
    out, offsets = b"%PDF-1.4\n", []
    kids = " ".join("%d 0 R" % (3 + 2 * p) for p in range(pages))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count %d /Kids [%s] >>" % (pages, kids)]
    for p in range(pages):
        text = "BT /F1 9 Tf 40 700 Td (form %d page %d) Tj ET\n" % (n, p) + "0 0 m 100 100 l S\n" * 200
        objects.append("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R /Resources << >> >>" % (4 + 2 * p))
        objects.append("<< /Length %d >>\nstream\n%sendstream" % (len(text), text))
    for i, o in enumerate(objects):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (i + 1, o.encode())
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + b"".join(b"%010d 00000 n \n" % o for o in offsets)
    return out + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
for n in range(60):
    open("form%02d.pdf" % n, "wb").write(pdf(n))
P
