python3 - > dump.txt <<'P'
print("VERSION=3\nformat=bytevalue\ntype=btree\nmapsize=1073741824\nmaxreaders=126\ndb_pagesize=4096\nHEADER=END")
import random
random.seed(1)
for i in range(40000):
    print(" %032x" % random.getrandbits(128)); print(" " + "61" * 60)
print("DATA=END")
P
mkdir db
