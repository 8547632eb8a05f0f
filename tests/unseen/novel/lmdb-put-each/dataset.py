# packs images into a dataset for training
import pickle, random, sys
import lmdb

per = int(sys.argv[1])
random.seed(5)
env = lmdb.open("train.lmdb", map_size=1 << 30)
images = [random.randbytes(random.randrange(2000, 5000)) for _ in range(1500)]
for at in range(0, len(images), per):
    with env.begin(write=True) as txn:
        for n in range(at, min(at + per, len(images))):
            txn.put(b"%08d" % n, pickle.dumps({"label": n % 10, "image": images[n]}))
with env.begin() as txn:
    print(txn.stat()["entries"])
env.close()
