"""Trains a toy model and saves a checkpoint of eight shards after each epoch; the two newest checkpoints are kept."""
import os, random, shutil

SHARDS, SHARD = 8, 3 << 20
state = [bytearray(random.Random(i).randbytes(SHARD)) for i in range(SHARDS)]


def train(epoch):
    for i, shard in enumerate(state):
        shard[epoch * 4096 : epoch * 4096 + 4096] = random.Random(epoch * 100 + i).randbytes(4096)


def sync_dir(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def write_shards(step):
    folder = f"ckpt/step-{step:06d}"
    os.makedirs(folder)
    for i, shard in enumerate(state):
        with open(f"{folder}/model-{i:05d}-of-{SHARDS:05d}.bin", "wb") as f:
            f.write(shard)
    return folder


def point_latest(folder):
    """The pointer must survive a crash, so it is replaced atomically."""
    with open("ckpt/latest.tmp", "w") as f:
        f.write(os.path.basename(folder) + "\n")
        f.flush()
        os.fsync(f.fileno())
    os.rename("ckpt/latest.tmp", "ckpt/latest")
    sync_dir("ckpt")


def main():
    os.makedirs("ckpt", exist_ok=True)
    kept = []
    for epoch in range(6):
        train(epoch)
        folder = write_shards(epoch * 500)
        point_latest(folder)
        kept.append(folder)
        if len(kept) > 2:
            shutil.rmtree(kept.pop(0))
        print("epoch", epoch, "saved to", folder)


main()
