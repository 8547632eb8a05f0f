"""Programs whose threads or processes get in each other's way, and such that do not."""

import contextlib
import ctypes
import fcntl
import mmap
import os
import queue
import threading
import time

from corpus import cold, create, helper, in_child, name_thread, program, scattered, setup
from corpus import touch, until, wait


def run(*functions):
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def locks(inside, outside):
    os.close(os.open("lock", os.O_CREAT | os.O_RDWR, 0o644))

    def worker():
        fd = os.open("lock", os.O_RDWR)
        for _ in range(20):
            fcntl.lockf(fd, fcntl.LOCK_EX)
            time.sleep(inside)
            fcntl.lockf(fd, fcntl.LOCK_UN)
            time.sleep(outside)

    wait(*[in_child(worker) for _ in range(3)])


@program("contention/bad")
def works_under_the_lock():
    locks(0.004, 0)


@program("contention/good")
def works_before_the_lock():
    locks(0, 0.004)


BLOCK = b"x" * (512 << 10)


def writers(names):
    def writer(name, first):
        def work():
            fd = os.open(name, os.O_CREAT | os.O_WRONLY, 0o644)
            for i in range(80):
                os.pwrite(fd, BLOCK, (first + i) << 19)

        return work

    writer(names[0], 0)()
    run(*[writer(name, 80 + 80 * i) for i, name in enumerate(names)])


@program("thread-interference/bad")
def four_threads_on_one_inode():
    writers(["shared"] * 4)


@program("thread-interference/good")
def two_threads_on_their_own():
    writers(["one", "two"])


RECORD = b"r" * (32 << 10)


@setup("waits-for-anothers-sync/bad", "waits-for-anothers-sync/good", "waits-for-anothers-sync/good-worker")
def a_log_with_room():
    os.close(create("log", 32 << 20))


def log(clients, records, durable):
    """Clients hand records to a thread that makes them durable; they wait for that or not."""
    inbox, ready = [], threading.Condition()

    def writer():
        name_thread("log-writer")
        fd = os.open("log", os.O_WRONLY)
        left, at = clients * records, 0
        while left:
            with ready:
                ready.wait_for(lambda: inbox)
                batch = inbox[:]
                inbox.clear()
            os.pwritev(fd, [RECORD] * len(batch), at)
            os.fdatasync(fd)
            at = (at + len(batch) * len(RECORD)) % (24 << 20)
            left -= len(batch)
            for event in batch:
                event.set()

    def client():
        name_thread("client")
        for _ in range(records):
            event = threading.Event()
            with ready:
                inbox.append(event)
                ready.notify()
            if durable:
                event.wait()
            else:
                time.sleep(0.002)

    run(writer, *[client] * clients)


@program("waits-for-anothers-sync/bad")
def syncs_each_record_under_a_lock():
    fd = os.open("log", os.O_WRONLY)
    lock = threading.Lock()
    at = [0]

    def client():
        name_thread("client")
        for _ in range(100):
            with lock:
                os.pwrite(fd, RECORD, at[0])
                os.fdatasync(fd)
                at[0] = (at[0] + len(RECORD)) % (24 << 20)
            time.sleep(0)

    run(*[client] * 4)


@program("waits-for-anothers-sync/good")
def does_not_wait_for_the_log():
    log(4, 150, False)


@program("waits-for-anothers-sync/good-worker")
def a_worker_that_waits_for_the_next_file():
    """The next step of a pipeline has nothing to do until a file is durable, and nobody waits for
    it."""
    files = queue.SimpleQueue()

    def saver():
        name_thread("saver")
        fd = os.open("log", os.O_WRONLY)
        for i in range(100):
            os.pwritev(fd, [RECORD] * 8, i % 64 << 18)
            os.fdatasync(fd)
            files.put(i)
        files.put(None)

    def uploader():
        name_thread("uploader")
        while files.get() is not None:
            pass

    run(saver, uploader)


@setup("lock-convoy/bad", "lock-convoy/good")
def a_cold_table():
    cold("table", 64 << 20)


def reads(lock):
    """Four threads read blocks of a table, each its own, and compute a little with them."""
    fd = os.open("table", os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    blocks = list(scattered(600, 1024))

    def reader(number):
        def work():
            name_thread("reader")
            for at in blocks[number::4]:
                with lock:
                    block = os.pread(fd, 64 << 10, at << 16)
                sum(block[:2000])

        return work

    run(*[reader(number) for number in range(4)])


@program("lock-convoy/bad")
def reads_under_the_lock():
    reads(threading.Lock())


@program("lock-convoy/good")
def reads_without_a_lock():
    reads(contextlib.nullcontext())


def store(checkpoint):
    """A client that changes rows, and a checkpoint that writes many pages at times."""
    done = threading.Event()

    def client():
        name_thread("client")
        fd = os.open("table", os.O_RDWR)
        i = 0
        while not done.is_set():
            os.pwrite(fd, b"row" * 100, i % 4096 * 1000)
            os.pread(fd, 300, i % 4096 * 1000)
            time.sleep(0.0003)
            i += 1

    def background():
        name_thread("checkpoint0")
        time.sleep(1.0)
        checkpoint()
        time.sleep(0.2)
        done.set()

    run(client, background)


@setup("background-io-interference/bad", "background-io-interference/good")
def a_large_table():
    os.close(create("table", 48 << 20))


@program("background-io-interference/bad")
def writes_large_pieces_of_the_same_file():
    def checkpoint():
        fd = os.open("table", os.O_RDWR)
        end = time.monotonic() + 1.2
        piece = [b"x" * (16 << 20)]
        while time.monotonic() < end:
            os.pwritev(fd, piece, 16 << 20)
            time.sleep(0.001)

    store(checkpoint)


@program("background-io-interference/good")
def writes_small_pieces_of_another():
    def checkpoint():
        fd = os.open("other", os.O_CREAT | os.O_WRONLY, 0o644)
        for i in range(24):
            for k in range(32):
                os.pwrite(fd, b"x" * 65536, i * 32 + k << 16)
            time.sleep(0.05)

    store(checkpoint)


def readers():
    """Two that do the same, each on a processor of its own."""
    cpus = sorted(os.sched_getaffinity(0))[:2]

    def reader(number):
        def work():
            name_thread(f"reader{number}")
            os.sched_setaffinity(0, {cpus[number]})
            fd = os.open(f"hot{number}", os.O_CREAT | os.O_RDWR, 0o644)
            buffer = [bytearray(2 << 20)]
            end = time.monotonic() + 0.8
            while time.monotonic() < end:
                os.pwritev(fd, buffer, 0)
                os.preadv(fd, buffer, 0)

        return work

    touch("go")
    run(reader(0), reader(1))
    touch("stop")


def wakes(*processors):
    """Timers that end more than ten thousand times a second, each on a processor of its own: sets
    them again at once whatever else wants the processor, else there would be few of them."""
    cpus = sorted(os.sched_getaffinity(0))[:2]

    def wake(number):
        def work():
            os.sched_setaffinity(0, {cpus[number]})
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            until("go")
            while not os.path.exists("stop"):
                for _ in range(200):
                    time.sleep(0.00005)

        return work

    wait(*[in_child(wake(number)) for number in processors])


@helper("irq-imbalance/bad")
def timers_of_one_processor():
    wakes(0, 0, 0, 0)


@helper("irq-imbalance/good")
def timers_of_both():
    wakes(0, 0, 1, 1)


@program("irq-imbalance/bad", "irq-imbalance/good")
def two_readers():
    readers()


@setup("noisy-neighbor/bad", "noisy-neighbor/good")
def a_table_and_a_copy():
    cold("table", 16 << 20)
    os.close(create("copy", 32 << 20))


def hog(threads, pause):
    until("go")

    def work(number):
        def write():
            fd = os.open("copy", os.O_WRONLY | os.O_DIRECT)
            memory = mmap.mmap(-1, 1 << 20)
            at = number << 20
            while not os.path.exists("stop"):
                os.pwrite(fd, memory, at % (32 << 20))
                at += 1 << 20
                time.sleep(pause)

        return write

    run(*[work(i) for i in range(threads)])


@helper("noisy-neighbor/bad")
def copies_with_many_at_once():
    hog(16, 0)


@helper("noisy-neighbor/good")
def copies_now_and_then():
    hog(1, 0.02)


@program("noisy-neighbor/bad", "noisy-neighbor/good")
def reads_a_table():
    fd = os.open("table", os.O_RDONLY | os.O_DIRECT)
    memory = mmap.mmap(-1, 16384)
    for i in range(400):
        os.preadv(fd, [memory], i * 16384)
        if i == 150:
            touch("go")
            time.sleep(0.1)
        if i > 150:
            time.sleep(0.002)
    touch("stop")


def spin(number):
    """Processes that compute until the program ends."""

    def compute():
        while not os.path.exists("stop"):
            for _ in range(100_000):
                pass

    until("go")
    wait(*[in_child(compute) for _ in range(number)])


@helper("cpu-starvation/bad")
def computes_on_all_processors():
    spin(2 * os.cpu_count())


@helper("cpu-starvation/good")
def computes_beside_it():
    spin(0)


@program("cpu-starvation/bad", "cpu-starvation/good")
def reads_from_memory():
    fd = os.open("journal", os.O_RDWR | os.O_CREAT)
    os.pwrite(fd, bytes(4 << 20), 0)
    memory = mmap.mmap(-1, 1 << 20)
    touch("go")
    time.sleep(0.5)
    os.nice(25)
    for i in range(1000):
        os.preadv(fd, [memory], i % 4 << 20)
    touch("stop")


def locked(work):
    """Three processes that take turns."""
    touch("lock-file")
    wait(*[in_child(lambda: [work() for _ in range(20)]) for _ in range(3)])


@program("lock-by-polling/bad")
def tries_to_make_a_directory():
    def work():
        while True:
            try:
                os.mkdir("lock")
                break
            except FileExistsError:
                time.sleep(0.002)
        time.sleep(0.005)
        os.rmdir("lock")
        time.sleep(0.001)

    locked(work)


@program("lock-by-polling/good")
def waits_for_the_lock():
    def work():
        fd = os.open("lock-file", os.O_RDWR)
        fcntl.flock(fd, fcntl.LOCK_EX)
        time.sleep(0.005)
        os.close(fd)
        time.sleep(0.001)

    locked(work)


@program("lock-by-polling/good-parents")
def makes_directories_that_may_be_there():
    def work():
        for i in range(10):
            os.makedirs(f"parts/{i}", exist_ok=True)

    locked(work)
