"""Loads shuffled images for the training by eight workers."""
import random
import sys
from concurrent.futures import ThreadPoolExecutor, ProcessPoolExecutor
import h5py

order = list(range(12000))
random.Random(3).shuffle(order)
images = h5py.File("images.h5", "r")["images"]


def load(part):
    return sum(int(images[n][0, 0]) for n in part)


def work(part):
    global images
    images = h5py.File("images.h5", "r")["images"]
    return load(part)


if __name__ == "__main__":
    parts = [order[n::64] for n in range(64)]
    if sys.argv[1:]:
        with ProcessPoolExecutor(8) as pool:
            print(sum(pool.map(work, parts)))
    else:
        with ThreadPoolExecutor(8) as pool:
            print(sum(pool.map(load, parts)))
