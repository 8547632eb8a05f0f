import random
import xapian

r = random.Random(3)
words = ["w%d" % n for n in range(4000)]
db = xapian.WritableDatabase("index", xapian.DB_CREATE_OR_OPEN)
generator = xapian.TermGenerator()
generator.set_stemmer(xapian.Stem("english"))
for n in range(350):
    text = " ".join(r.choice(words) for _ in range(60))
    document = xapian.Document()
    document.set_data(text)
    generator.set_document(document)
    generator.index_text(text)
    db.add_document(document)
    db.commit()
db.close()
