import os
import random
from whoosh.fields import ID, TEXT, Schema
from whoosh.index import create_in

r = random.Random(8)
os.mkdir("notes")
index = create_in("notes", Schema(path=ID(stored=True), body=TEXT))
for n in range(120):
    writer = index.writer()
    writer.add_document(path="note%d" % n, body=" ".join("word%d" % r.randrange(3000) for _ in range(80)))
    writer.commit()
print(index.doc_count())
