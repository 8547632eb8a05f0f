"""Programs that move bytes in ways that cost more, or less."""

import io
import mmap
import os

from corpus import cold, create, program, scattered, setup

PAGE = b"x" * 4096


@program("small-sequential/bad")
def two_files_by_turns():
    fds = [os.open(name, os.O_CREAT | os.O_WRONLY, 0o644) for name in ("left", "right")]
    for i in range(20000):
        os.writev(fds[i % 2], [b"key %08d " % i, b"v" * 180, b"\n"])


@program("small-sequential/good")
def two_files_by_turns_buffered():
    files = [io.open(name, "wb", buffering=65536) for name in ("left", "right")]
    for i in range(20000):
        files[i % 2].write(b"key %08d " % i + b"v" * 180 + b"\n")
    for file in files:
        file.close()


@setup("hole-reads/bad", "hole-reads/good")
def an_image_with_little_in_it():
    fd = os.open("disk.img", os.O_CREAT | os.O_WRONLY, 0o644)
    os.ftruncate(fd, 512 << 20)
    for at in range(0, 512 << 20, 64 << 20):
        os.pwrite(fd, os.urandom(1 << 20), at)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


@program("hole-reads/bad")
def backs_up_all_of_it():
    fd = os.open("disk.img", os.O_RDONLY)
    while os.read(fd, 1 << 16):
        pass


@program("hole-reads/good")
def backs_up_the_data():
    fd = os.open("disk.img", os.O_RDONLY)
    at, size = 0, os.fstat(fd).st_size
    while at < size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            break
        end = os.lseek(fd, at, os.SEEK_HOLE)
        while at < end:
            at += len(os.pread(fd, min(1 << 20, end - at), at))


COUNTERS = 4096


@setup("tiny-access/bad", "tiny-access/good")
def a_file_of_counters():
    os.close(create("counters", COUNTERS * 16))


def places():
    """Each counter a few times, as events of that kind come."""
    return ((i * 2654435761 >> 7) % COUNTERS * 16 for i in range(40000))


@program("tiny-access/bad")
def counts_in_the_file():
    fd = os.open("counters", os.O_RDWR)
    for at in places():
        value = int.from_bytes(os.pread(fd, 16, at), "little")
        os.pwrite(fd, (value + 1).to_bytes(16, "little"), at)


@program("tiny-access/good")
def counts_in_a_mapping():
    fd = os.open("counters", os.O_RDWR)
    with mmap.mmap(fd, COUNTERS * 16) as counters:
        for at in places():
            value = int.from_bytes(counters[at : at + 16], "little")
            counters[at : at + 16] = (value + 1).to_bytes(16, "little")


RECORDS = 20000


@setup("lseek-before-io/bad", "lseek-before-io/good")
def an_archive():
    os.close(create("archive", RECORDS * 1000))


@program("lseek-before-io/bad")
def skips_bodies_with_seeks():
    fd = os.open("archive", os.O_RDONLY)
    for _ in range(RECORDS):
        # Where is it, before and after each field.
        for _ in range(5):
            os.lseek(fd, 0, os.SEEK_CUR)
        os.read(fd, 60)
        os.lseek(fd, 940, os.SEEK_CUR)


@program("lseek-before-io/good")
def reads_headers_where_they_are():
    fd = os.open("archive", os.O_RDONLY)
    for i in range(RECORDS):
        os.pread(fd, 60, i * 1000)
    for _ in range(20):
        os.lseek(fd, 0, os.SEEK_END)


@setup("redundant-write/bad", "redundant-write/good")
def a_table():
    os.close(create("table", 1 << 20))


@program("redundant-write/bad")
def header_beside_each_row():
    fd = os.open("table", os.O_RDWR)
    for i in range(4000):
        os.pwrite(fd, PAGE, 65536 + i * 4096)
        os.pwritev(fd, [PAGE, PAGE], 0)


@program("redundant-write/good")
def header_now_and_then():
    fd = os.open("table", os.O_RDWR)
    for i in range(4000):
        os.pwrite(fd, PAGE, 65536 + i * 4096)
        if i % 1000 == 999:
            os.pwritev(fd, [PAGE, PAGE], 0)


@setup("redundant-read/bad", "redundant-read/good")
def an_index_with_rows():
    os.close(create("index", 50 << 20))


@program("redundant-read/bad")
def index_before_each_row():
    fd = os.open("index", os.O_RDONLY)
    buffer = [bytearray(24 << 10), bytearray(24 << 10)]
    for i in range(6000):
        os.preadv(fd, buffer, 0)
        os.pread(fd, 8192, 65536 + i * 8192)


@program("redundant-read/good")
def index_once():
    fd = os.open("index", os.O_RDONLY)
    for at in range(0, 48 << 10, 8192):
        os.pread(fd, 8192, at)
    for i in range(6000):
        os.pread(fd, 8192, 65536 + i * 8192)


PAGES = 64


@setup("redundant-read/bad-pages", "redundant-read/good-pages")
def counters_in_pages():
    os.close(create("counters", PAGES * 4096))


def pages_of_words():
    for i in range(20_000):
        yield i * 31 % PAGES * 4096


@program("redundant-read/bad-pages")
def page_for_each_word():
    fd = os.open("counters", os.O_RDWR)
    for at in pages_of_words():
        os.pwrite(fd, os.pread(fd, 4096, at), at)


@program("redundant-read/good-pages")
def pages_in_memory():
    fd = os.open("counters", os.O_RDWR)
    pages = {at * 4096: os.pread(fd, 4096, at * 4096) for at in range(PAGES)}
    for at in pages_of_words():
        pages[at] = bytes(pages[at])
    for at, page in pages.items():
        os.pwrite(fd, page, at)


@setup("userspace-copy/bad", "userspace-copy/good", "userspace-copy/good-other-bytes")
def a_source():
    os.close(create("from", 64 << 20))


@program("userspace-copy/bad")
def copies_by_offsets():
    source, target = os.open("from", os.O_RDONLY), os.open("to", os.O_CREAT | os.O_WRONLY)
    for at in range(0, 64 << 20, 64 << 10):
        os.pwritev(target, [os.pread(source, 64 << 10, at)], at)


@program("userspace-copy/good")
def has_the_kernel_copy():
    source, target = os.open("from", os.O_RDONLY), os.open("to", os.O_CREAT | os.O_WRONLY)
    left = 64 << 20
    while left:
        left -= os.copy_file_range(source, target, min(left, 1 << 20))


@program("userspace-copy/good-other-bytes")
def writes_half_of_what_it_reads():
    source, target = os.open("from", os.O_RDONLY), os.open("to", os.O_CREAT | os.O_WRONLY)
    for at in range(0, 64 << 20, 64 << 10):
        os.write(target, os.pread(source, 64 << 10, at)[::2])


ROWS = list(scattered(1024, 1024))


@setup("scan-out-of-order/bad", "scan-out-of-order/good")
def a_heap():
    cold("heap", 16 << 20)


@program("scan-out-of-order/bad")
def rows_by_key():
    fd = os.open("heap", os.O_RDONLY)
    for row in ROWS:
        os.pread(fd, 16 << 10, row * (16 << 10))


@program("scan-out-of-order/good")
def rows_by_place():
    fd = os.open("heap", os.O_RDONLY)
    for row in sorted(ROWS):
        os.pread(fd, 16 << 10, row * (16 << 10))


SYNCS = 80


@program("missing-fallocate/bad")
def grows_and_syncs():
    fd = os.open("wal", os.O_CREAT | os.O_WRONLY, 0o644)
    for i in range(SYNCS):
        os.pwrite(fd, PAGE * 5, i * 20480)
        os.fdatasync(fd)


@program("missing-fallocate/good")
def syncs_in_what_is_there():
    fd = os.open("wal", os.O_CREAT | os.O_WRONLY, 0o644)
    for i in range(SYNCS):
        os.pwrite(fd, bytes(20480), i * 20480)
    os.fdatasync(fd)
    for i in range(SYNCS):
        os.pwrite(fd, PAGE * 5, i * 20480)
        os.fdatasync(fd)
