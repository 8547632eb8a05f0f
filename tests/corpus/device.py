"""Programs whose cost lies below their calls: in the page cache and at the device."""

import mmap
import os
import subprocess

from corpus import cold, create, program, scattered, setup

PAGE = b"x" * 4096
PLACES = [place * 4096 for place in scattered(500, 12000)]


@setup("random-access/bad", "random-access/good", "random-access/good-in-memory")
def keys_and_values():
    for name in ("keys", "values"):
        cold(name, 48 << 20)


def probe(ahead):
    fds = [os.open(name, os.O_RDONLY) for name in ("keys", "values")]
    for i, place in enumerate(PLACES):
        for fd in fds:
            if ahead and i % 50 == 0:
                for soon in PLACES[i : i + 50]:
                    os.posix_fadvise(fd, soon, 4096, os.POSIX_FADV_WILLNEED)
            os.pread(fd, 200, place)


@program("random-access/bad")
def one_row_at_a_time():
    probe(False)


@program("random-access/good")
def a_batch_of_rows():
    probe(True)


@program("random-access/good-in-memory")
def rows_in_memory():
    for name in ("keys", "values"):
        fd = os.open(name, os.O_RDONLY)
        while os.read(fd, 1 << 20):
            pass
        os.close(fd)
    probe(False)


@setup("write-amplification/bad", "write-amplification/good")
def a_hash_table():
    os.close(create("table", 8 << 20))


@program("write-amplification/bad")
def a_slot_at_a_time():
    fd = os.open("table", os.O_WRONLY | os.O_DSYNC)
    for place in scattered(150, 2048):
        os.pwrite(fd, b"s" * 300, place * 4096 + 100)


@program("write-amplification/good")
def slots_through_a_log():
    fd = os.open("table", os.O_WRONLY | os.O_DSYNC)
    for i in range(5):
        os.pwrite(fd, b"s" * 300 * 30, i * 9000)


@setup("write-amplification/bad-parts", "write-amplification/good-parts")
def a_cold_table():
    cold("table", 48 << 20)


@program("write-amplification/bad-parts")
def parts_of_cold_pages():
    fd = os.open("table", os.O_WRONLY)
    for place in scattered(400, 12000):
        os.pwrite(fd, b"s" * 64, place * 4096 + 128)


@program("write-amplification/good-parts")
def whole_cold_pages():
    fd = os.open("table", os.O_WRONLY)
    for place in scattered(400, 12000):
        os.pwrite(fd, PAGE, place * 4096)


def spill(flags):
    fd = os.open("run", os.O_CREAT | os.O_RDWR | flags, 0o644)
    memory = mmap.mmap(-1, 1 << 16)
    for i in range(256):
        os.pwritev(fd, [memory], i << 16)
    for i in range(256):
        os.preadv(fd, [memory], i << 16)


@program("read-after-write-miss/bad")
def spills_past_memory():
    spill(os.O_DIRECT)


@program("read-after-write-miss/good")
def spills_through_memory():
    spill(0)


@program("read-after-write-miss/bad-dropped")
def merges_what_it_dropped():
    fd = os.open("run", os.O_CREAT | os.O_RDWR, 0o644)
    for i in range(256):
        os.pwrite(fd, PAGE * 16, i << 16)
    os.fdatasync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    # Sixteen runs of a megabyte, a piece of each in turn.
    for piece in range(64):
        for run in range(16):
            os.pread(fd, 1 << 14, (run << 20) + (piece << 14))


@setup("read-after-write-miss/good-of-another")
def somebody_elses_runs():
    cold("run", 16 << 20)


@program("read-after-write-miss/good-of-another")
def reads_what_another_wrote():
    fd = os.open("run", os.O_RDWR)
    os.pwrite(fd, PAGE, 0)
    for i in range(256):
        os.pread(fd, 1 << 16, i << 16)


@setup("fault-storm/bad", "fault-storm/good", "fault-storm/good-walk")
def a_mapped_table():
    cold("mapped", 48 << 20)


def touches(ahead):
    fd = os.open("mapped", os.O_RDONLY)
    table = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
    if not ahead:
        table.madvise(mmap.MADV_RANDOM)
    pages = [page * 37 * 4096 for page in range(320)]
    total = 0
    for i, at in enumerate(pages):
        if ahead and i % 40 == 0:
            for soon in pages[i : i + 40]:
                table.madvise(mmap.MADV_WILLNEED, soon, 4096)
        total += table[at]
    return total


@program("fault-storm/bad")
def strides():
    touches(False)


@program("fault-storm/good")
def strides_ahead():
    touches(True)


@program("fault-storm/good-walk")
def walks():
    fd = os.open("mapped", os.O_RDONLY)
    table = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
    table.madvise(mmap.MADV_SEQUENTIAL)
    return sum(table[at] for at in range(0, 8 << 20, 4096))


@setup("readahead-defeated/bad", "readahead-defeated/good")
def a_long_file():
    cold("long", 16 << 20)


def stream(drop):
    fd = os.open("long", os.O_RDONLY)
    for at in range(0, 4 << 20, 8192):
        os.read(fd, 8192)
        drop(fd, at)


@program("readahead-defeated/bad")
def drops_the_whole_file():
    stream(lambda fd, at: os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED))


@program("readahead-defeated/good")
def drops_what_is_behind():
    stream(lambda fd, at: os.posix_fadvise(fd, 0, at, os.POSIX_FADV_DONTNEED))


def syncs(every):
    fds = [os.open(name, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644) for name in ("a", "b")]
    for i in range(80):
        fd = fds[i % 2]
        for _ in range(3):
            os.write(fd, b"row" * 200)
        if i // 2 % every == every - 1:
            os.fdatasync(fd)


@program("sync-storm/bad")
def syncs_two_logs_by_turns():
    syncs(1)


@program("sync-storm/good")
def syncs_twenty_at_a_time():
    syncs(20)


def rows_in_one_file(every, durable):
    fd = os.open("rows", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
    for i in range(40):
        os.write(fd, b"row" * 200)
        if i % every == every - 1:
            durable(fd)


@program("sync-all/bad")
def makes_everything_durable_for_each_row():
    rows_in_one_file(1, lambda _: os.sync())


@program("sync-all/good")
def makes_the_file_durable_now_and_then():
    rows_in_one_file(20, os.fdatasync)


@setup("cold-small-files/bad", "cold-small-files/good")
def letters():
    for i in range(600):
        cold(f"letter-{i:03}", 8000)


def letters_in_turn(ahead):
    total = 0
    for first in range(0, 600, 50):
        fds = [os.open(f"letter-{i:03}", os.O_RDONLY) for i in range(first, first + 50)]
        if ahead:
            for fd in fds:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_WILLNEED)
        for fd in fds:
            total += len(os.read(fd, 1 << 16))
            os.close(fd)
    return total


@program("cold-small-files/bad")
def waits_for_each_letter():
    letters_in_turn(False)


@program("cold-small-files/good")
def asks_for_fifty_letters():
    letters_in_turn(True)


@setup("direct-shallow/bad", "direct-shallow/good", "direct-shallow/good-log")
def a_large_table():
    os.close(create("table", 16 << 20))


def direct_pieces(size):
    fd = os.open("table", os.O_RDONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, size)
    while os.readv(fd, [buffer]):
        pass


@program("direct-shallow/bad")
def reads_two_pages_at_a_time():
    direct_pieces(8192)


@program("direct-shallow/good")
def reads_a_megabyte_at_a_time():
    direct_pieces(1 << 20)


@program("direct-shallow/good-log")
def writes_records_that_are_durable():
    fd = os.open("table", os.O_WRONLY | os.O_DIRECT)
    buffer = mmap.mmap(-1, 4096)
    for i in range(200):
        os.writev(fd, [buffer])
        os.fdatasync(fd)


def files_of_a_file_system(options):
    """Files on an ext4 that discards blocks when they are freed: one without a journal."""
    with open("image", "w") as image:
        os.truncate(image.fileno(), 256 << 20)
    os.mkdir("inner")
    for command in (
        ["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "image"],
        ["mount", "-o", options, "image", "inner"],
    ):
        subprocess.run(command, check=True)
    for i in range(400):
        os.close(create(f"inner/{i}", 200000))


@setup("online-discard/bad")
def with_discard():
    files_of_a_file_system("loop,discard")


@setup("online-discard/good")
def without_discard():
    files_of_a_file_system("loop,nodiscard")


@program("online-discard/bad", "online-discard/good")
def removes_all():
    for i in range(400):
        os.unlink(f"inner/{i}")
