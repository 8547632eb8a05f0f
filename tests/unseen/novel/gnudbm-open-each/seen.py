# remembers which entries of the feeds were seen
import dbm.gnu, hashlib, sys

entries = ["http://example.org/post/%d" % (n * 7919 % 2300) for n in range(3000)]


def seen(db, url):
    key = hashlib.sha1(url.encode()).digest()
    if key in db:
        return True
    db[key] = url
    return False


new = 0
if sys.argv[1] == "each":
    for url in entries:
        with dbm.gnu.open("seen.db", "c") as db:
            new += not seen(db, url)
else:
    with dbm.gnu.open("seen.db", "c") as db:
        for url in entries:
            new += not seen(db, url)
print(new)
