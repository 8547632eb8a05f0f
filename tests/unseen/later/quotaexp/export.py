"""Exports the tables of a shop, a file for each, into the customer's area, which has a limit for the size of a file."""
import os, random, sys

COLUMNS = ("id", "name", "price", "note")


def table(name, rows):
    rnd = random.Random(name)
    lines = [",".join(COLUMNS)]
    for i in range(rows):
        lines.append("%d,%s-%d,%.2f,%s" % (i, name, rnd.randrange(10**6), rnd.random() * 100, "x" * rnd.randrange(60)))
    return ("\n".join(lines) + "\n").encode()


def save(name, data):
    tmp = name + ".part"
    fd = os.open(tmp, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)
    os.rename(tmp, name)
    return len(data)


def main():
    os.makedirs("export", exist_ok=True)
    for name, rows in (("customers", 20000), ("articles", 45000), ("orders", 160000), ("returns", 9000)):
        n = save("export/%s.csv" % name, table(name, rows))
        print("%s: %d bytes exported" % (name, n))
    d = os.open("export", os.O_RDONLY)
    os.fsync(d)
    os.close(d)


main()
