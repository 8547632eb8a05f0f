"""Programs that may lose data, or read the wrong, and such that only look so."""

import ctypes
import fcntl
import mmap
import os
import resource
import signal
import tempfile
import time

from corpus import create, helper, in_child, program, setup, touch, until, wait


def sync_directory(path="."):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)


def write_file(path, data, flags=os.O_CREAT | os.O_TRUNC, sync=False):
    fd = os.open(path, os.O_WRONLY | flags, 0o644)
    os.writev(fd, [data[:100], data[100:]])
    if sync:
        os.fsync(fd)
    os.close(fd)


@setup("rename-without-fsync/bad", "rename-without-fsync/good")
def old_state():
    write_file("state", b"old" * 1000)


@program("rename-without-fsync/bad")
def saves_below_a_directory_descriptor():
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    os.close(os.open("state", os.O_RDONLY, dir_fd=here))
    fd = os.open("state.new", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=here)
    os.writev(fd, [b"new", b"bytes" * 1000])
    os.close(fd)
    os.replace("state.new", "state", src_dir_fd=here, dst_dir_fd=here)
    os.fsync(here)


@program("rename-without-fsync/good")
def saves_what_is_durable():
    os.close(os.open("state", os.O_RDONLY))
    write_file("state.new", b"bytes" * 1000, sync=True)
    os.replace("state.new", "state")
    sync_directory()


@setup("missing-dir-fsync/bad", "missing-dir-fsync/good")
def two_directories():
    os.mkdir("incoming")
    os.mkdir("done")


def moves(directory):
    for i in range(3):
        write_file(f"incoming/{i}", b"message" * 500, sync=True)
        os.rename(f"incoming/{i}", f"done/{i}")
        sync_directory(directory)


@program("missing-dir-fsync/bad")
def syncs_where_it_came_from():
    moves("incoming")


@program("missing-dir-fsync/good")
def syncs_where_it_went():
    moves("done")


@program("missing-dir-fsync/good-new")
def new_files_keep_their_names():
    """ext4 makes the name of a new file durable with its bytes."""
    for i in range(4):
        write_file(f"relation-{i}", b"page" * 2000, os.O_CREAT | os.O_EXCL, sync=True)


@program("missing-dir-fsync/good-install")
def an_installer():
    """One of its files is made durable by a library, the others never."""
    for i in range(60):
        write_file(f"module-{i}.py", b"import os\n" * 100)
    write_file("record.tmp", b"module\n" * 60, sync=True)
    os.replace("record.tmp", "record")


@setup("publish-unsynced/bad", "publish-unsynced/good")
def a_mailbox():
    os.mkdir("tmp")
    os.mkdir("new")


def delivers(sync):
    for i in range(40):
        write_file(f"tmp/{i}", b"message" * 500, os.O_CREAT | os.O_EXCL, sync=sync)
        os.link(f"tmp/{i}", f"new/{i}")
        os.unlink(f"tmp/{i}")
    if sync:
        sync_directory("new")


@program("publish-unsynced/bad")
def delivers_what_is_not_durable():
    delivers(False)


@program("publish-unsynced/good")
def delivers_what_is_durable():
    delivers(True)


@program("rename-without-fsync/good-cache")
def saves_a_cache():
    os.makedirs("cache/thumbnails")
    journal = os.open("journal", os.O_CREAT | os.O_WRONLY, 0o644)
    for i in range(20):
        write_file("cache/thumbnails/new", b"picture" * 500)
        os.replace("cache/thumbnails/new", "cache/thumbnails/1.png")
    os.write(journal, b"done")
    os.fsync(journal)


@setup("non-atomic-rewrite/bad", "non-atomic-rewrite/good")
def settings():
    write_file("settings", b"old" * 1000)


@program("non-atomic-rewrite/bad")
def empties_by_path():
    for i in range(3):
        os.truncate("settings", 0)
        write_file("settings", b"new %d" % i * 1000, flags=0)


@program("non-atomic-rewrite/good")
def new_files_with_the_same_flags():
    for i in range(3):
        write_file(f"result-{i}", b"new %d" % i * 1000)
        os.truncate(f"result-{i}", 2000)


def full(lost):
    """Writes more than the device below has room for."""
    fd = os.open("data", os.O_CREAT | os.O_WRONLY, 0o644)
    try:
        for at in range(0, 64 << 20, 1 << 20):
            os.pwrite(fd, b"x" * (1 << 20), at)
        os.fsync(fd)
    except OSError:
        lost(fd)


@program("sync-error-ignored/bad")
def goes_on():
    def lost(fd):
        os.pwrite(fd, b"more", 65 << 20)
        try:
            os.fsync(fd)
        except OSError:
            pass

    full(lost)


@program("sync-error-ignored/good")
def gives_up():
    full(lambda fd: os.close(fd))


def limited(after):
    """Writes that the limit on the size of files cuts short."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    for i in range(3):
        fd = os.open(f"record-{i}", os.O_CREAT | os.O_WRONLY, 0o644)
        resource.setrlimit(resource.RLIMIT_FSIZE, (30000, most))
        written = os.write(fd, b"x" * 50000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        after(fd, written)
        os.close(fd)


@program("short-io/bad")
def believes_that_all_was_written():
    limited(lambda fd, written: os.pwrite(fd, b"trailer", 50000))


@program("short-io/good")
def writes_the_rest():
    limited(lambda fd, written: os.pwrite(fd, b"x" * (50000 - written), written))


def refused(path, after):
    """A second record that the limit on the size of files refuses."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    os.write(fd, b"x" * 30000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30000, most))
    try:
        os.write(fd, b"y" * 20000)
    except OSError:
        pass
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    after(fd)
    os.close(fd)


@program("write-error-ignored/bad")
def writes_the_end_of_what_is_not_there():
    refused("records", lambda fd: os.pwrite(fd, b"trailer", 50000))


@program("write-error-ignored/bad-published")
def publishes_what_is_incomplete():
    refused("state.tmp", os.fsync)
    os.rename("state.tmp", "state")


@program("write-error-ignored/good")
def removes_what_is_incomplete():
    refused("records", lambda fd: os.unlink("records"))


@program("write-error-ignored/good-again")
def writes_it_once_there_is_room():
    refused("records", lambda fd: os.write(fd, b"y" * 20000))


def taken(again):
    """A lock that somebody else has for a while."""
    os.close(os.open("lock", os.O_CREAT | os.O_RDWR, 0o644))

    def holder():
        fd = os.open("lock", os.O_RDWR)
        fcntl.lockf(fd, fcntl.LOCK_EX)
        touch("held")
        time.sleep(0.2)

    pid = in_child(holder)
    until("held")
    fd = os.open("lock", os.O_RDWR)
    while True:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            again()
    wait(pid)


@program("busy-retry/bad")
def tries_again_at_once():
    taken(lambda: None)


@program("busy-retry/good")
def tries_again_later():
    taken(lambda: time.sleep(0.001))


@setup("fd-leak/bad", "fd-leak/good")
def shards():
    os.mkdir("spool")
    for i in range(200):
        touch(f"spool/{i}")


@program("fd-leak/bad")
def forgets_directories():
    os.leaked = [os.open("spool", os.O_RDONLY | os.O_DIRECTORY) for _ in range(200)]


@program("fd-leak/good")
def keeps_many_files():
    os.kept = [os.open(f"spool/{i}", os.O_RDONLY) for i in range(200)]


def rotated(follow):
    """A log that its writer, another process, gives a new file."""

    def writer():
        write_file("log", b"first line\n" * 10)
        touch("written")
        until("read")
        os.rename("log", "log.1")
        write_file("log", b"after rotation\n" * 5)
        touch("rotated")

    pid = in_child(writer)
    until("written")
    follow()
    wait(pid)


@program("rotation-offset/bad")
def offset_by_name():
    def follow():
        offset = 0
        fd = os.open("log", os.O_RDONLY)
        offset += len(os.pread(fd, 4096, offset))
        os.close(fd)
        touch("read")
        until("rotated")
        fd = os.open("log", os.O_RDONLY)
        for _ in range(5):
            offset += len(os.pread(fd, 4096, offset))
        os.close(fd)

    rotated(follow)


@program("rotation-offset/good")
def offset_by_inode():
    def follow():
        offsets = {}

        def read_on():
            fd = os.open("log", os.O_RDONLY)
            inode = os.fstat(fd).st_ino
            for _ in range(2):
                offset = offsets.get(inode, 0)
                offsets[inode] = offset + len(os.pread(fd, 4096, offset))
            os.close(fd)

        read_on()
        read_on()
        touch("read")
        until("rotated")
        read_on()

    rotated(follow)


@program("reading-replaced-file/bad")
def stays_with_the_old_file():
    def follow():
        fd = os.open("log", os.O_RDONLY)
        os.read(fd, 4096)
        touch("read")
        until("rotated")
        for _ in range(6):
            os.read(fd, 4096)
            time.sleep(0.002)

    rotated(follow)


@program("reading-replaced-file/good")
def reads_the_rest_and_reopens():
    def follow():
        fd = os.open("log", os.O_RDONLY)
        os.read(fd, 4096)
        touch("read")
        until("rotated")
        for _ in range(2):
            os.read(fd, 4096)
        os.close(fd)
        fd = os.open("log", os.O_RDONLY)
        for _ in range(6):
            os.read(fd, 4096)
            time.sleep(0.002)

    rotated(follow)


@helper("content-mismatch/bad")
def writes_over_it():
    until("written")
    fd = os.open("shared", os.O_WRONLY)
    os.pwrite(fd, b"another", 4096)
    touch("changed")


@helper("content-mismatch/good")
def writes_beside_it():
    until("written")
    fd = os.open("shared", os.O_WRONLY)
    os.pwrite(fd, b"another", 12288)
    touch("changed")


@program("content-mismatch/bad", "content-mismatch/good")
def reads_what_it_wrote():
    fd = os.open("shared", os.O_CREAT | os.O_RDWR, 0o666)
    os.pwrite(fd, b"a" * 4096, 0)
    os.pwrite(fd, b"b" * 4096, 4096)
    touch("written")
    until("changed")
    os.pread(fd, 4096, 0)
    os.pread(fd, 4096, 4096)


@setup("unaligned-direct-io/bad", "unaligned-direct-io/good")
def blocks():
    os.close(create("blocks", 1 << 20))


def direct(length):
    fd = os.open("blocks", os.O_RDONLY | os.O_DIRECT)
    memory = mmap.mmap(-1, 1 << 16)
    for at in range(0, 1 << 20, 1 << 16):
        try:
            os.preadv(fd, [memoryview(memory)[:length]], at)
        except OSError:
            continue


@program("unaligned-direct-io/bad")
def a_length_of_a_thousand():
    direct(1000)


@program("unaligned-direct-io/good")
def whole_blocks():
    direct(8192)


def adds_lines(flags, before=lambda fd: None):
    """Lines of several processes in one file, by turns."""

    def adder(own, other):
        fd = os.open("log", os.O_CREAT | os.O_WRONLY | flags, 0o644)
        touch(f"{own}-ready")
        until(f"{other}-ready")
        for i in range(40):
            until(f"turn-{own}-{i}")
            before(fd)
            os.write(fd, f"{own} writes line {i}\n".encode())
            touch(f"turn-{other}-{i + (own == 'b')}")

    pids = [in_child(lambda: adder("a", "b")), in_child(lambda: adder("b", "a"))]
    touch("turn-a-0")
    wait(*pids)


@program("lost-update/bad")
def two_with_positions_of_their_own():
    adds_lines(0)


@program("lost-update/good")
def two_that_append():
    adds_lines(os.O_APPEND)


@program("lost-update/good-seek")
def two_that_look_for_the_end():
    adds_lines(0, lambda fd: os.lseek(fd, 0, os.SEEK_END))


def counts(lock):
    """A counter that two processes read, change and write back."""
    write_file("counter", b"0" * 200)

    def counter():
        for _ in range(100):
            guard = os.open("guard", os.O_CREAT | os.O_RDWR, 0o644)
            if lock:
                fcntl.flock(guard, fcntl.LOCK_EX)
            fd = os.open("counter", os.O_RDONLY)
            number = os.read(fd, 300)
            os.close(fd)
            time.sleep(0.0005)
            write_file("counter", number)
            os.close(guard)

    wait(*[in_child(counter) for _ in range(2)])


@program("lost-update/bad-counter")
def counts_what_it_read_before():
    counts(False)


@program("lost-update/good-counter")
def counts_below_a_lock():
    counts(True)


def emptied(flags):
    """A log that another process copies and empties."""

    def rotate(turn):
        fd = os.open("log", os.O_RDWR)
        write_file(f"log.{turn}", os.read(fd, 1 << 20))
        os.ftruncate(fd, 0)
        os.close(fd)

    fd = os.open("log", os.O_CREAT | os.O_WRONLY | flags, 0o644)
    for turn in range(3):
        for i in range(50):
            os.writev(fd, [b"a line ", b"of the log\n"])
        wait(in_child(lambda: rotate(turn)))
    os.writev(fd, [b"the last ", b"line\n"])
    os.close(fd)


@program("write-past-truncation/bad")
def goes_on_where_it_was():
    emptied(0)


@program("write-past-truncation/good")
def goes_on_at_the_end():
    emptied(os.O_APPEND)


def removed(again):
    """A log that another process removes while it is written."""

    def adds(fd):
        for i in range(150):
            os.writev(fd, [b"a line ", b"of the log\n"])

    flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND
    fd = os.open("log", flags, 0o644)
    adds(fd)
    wait(in_child(lambda: os.unlink("log")))
    if again:
        os.close(fd)
        fd = os.open("log", flags, 0o644)
    adds(fd)
    os.close(fd)


@program("write-to-deleted/bad")
def has_it_open_still():
    removed(False)


@program("write-to-deleted/good")
def opens_it_again():
    removed(True)


@program("write-to-deleted/good-temporary")
def reads_what_has_no_name():
    fd = os.open("sorted", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    os.write(fd, b"header")
    wait(in_child(lambda: os.unlink("sorted")))
    for i in range(150):
        os.writev(fd, [b"a part ", b"of the run\n"])
    os.preadv(fd, [bytearray(4096)], 0)


def confirms(sync):
    """Records that are each waited for."""
    libc = ctypes.CDLL(None)
    fd = os.open("records", os.O_CREAT | os.O_WRONLY, 0o644)
    for i in range(30):
        os.writev(fd, [b"record ", b"%d\n" % i])
        # SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER
        libc.sync_file_range(fd, ctypes.c_int64(0), ctypes.c_int64(0), 6)
    if sync:
        os.fdatasync(fd)
    os.close(fd)


@program("range-sync-as-commit/bad")
def confirms_what_is_not_durable():
    confirms(False)


@program("range-sync-as-commit/good")
def confirms_what_is_durable():
    confirms(True)


def parts(after):
    os.mkdir("work")
    for i in range(120):
        fd, path = tempfile.mkstemp(dir="work")
        os.writev(fd, [b"part ", b"of the work\n"])
        os.close(fd)
        after(path, i)


@program("temp-leak/bad")
def forgets_its_parts():
    parts(lambda path, i: None)


@program("temp-leak/good")
def removes_its_parts():
    parts(lambda path, i: os.unlink(path))


@program("temp-leak/good-named")
def gives_its_parts_a_name():
    parts(lambda path, i: os.link(path, f"work/part-{i}"))
