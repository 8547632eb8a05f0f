"""Programs that look for, open and make files."""

import os
import stat

from corpus import create, program, scattered, setup


@setup("repeated-open/bad", "repeated-open/good")
def one_table():
    os.mkdir("sub")
    os.close(create("table", 4 << 20))


@program("repeated-open/bad")
def opens_by_three_names():
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    for i in range(12000):
        name = ("table", "sub/../table", os.path.join(os.getcwd(), "table"))[i % 3]
        fd = os.open(name, os.O_RDONLY, dir_fd=here)
        os.pread(fd, 1000, i % 4000 * 1000)
        os.close(fd)


@program("repeated-open/good")
def copies_the_descriptor():
    table = os.open("table", os.O_RDONLY)
    for i in range(12000):
        fd = os.dup(table)
        os.pread(fd, 1000, i % 4000 * 1000)
        os.close(fd)


def files(directory, count, size=0):
    os.mkdir(directory)
    for i in range(count):
        fd = os.open(f"{directory}/{i}", os.O_CREAT | os.O_WRONLY, 0o644)
        os.write(fd, b"x" * size)
        os.close(fd)


@setup("redundant-stat/bad", "redundant-stat/good")
def many_files():
    files("many", 40)


@program("redundant-stat/bad")
def asks_forty_files_forty_times():
    many = os.open("many", os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(400):
        for i in range(40):
            os.stat(str(i), dir_fd=many, follow_symlinks=False)


@program("redundant-stat/good")
def asks_each_file_once():
    many = os.open("many", os.O_RDONLY | os.O_DIRECTORY)
    for i in range(40):
        os.stat(str(i), dir_fd=many, follow_symlinks=False)


@setup("redundant-stat/good-archive", "metadata-storm/good-copy")
def a_tree():
    os.mkdir("tree")
    for i in range(8):
        files(f"tree/{i}", 250, 500)


def entries():
    """All files of the tree, each with what it is."""
    for directory in range(8):
        for name in os.listdir(f"tree/{directory}"):
            path = f"tree/{directory}/{name}"
            yield path, os.lstat(path)


@program("redundant-stat/good-archive")
def looks_before_it_opens():
    for path, about in entries():
        if stat.S_ISREG(about.st_mode):
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            os.read(fd, 500)
            os.close(fd)


@program("metadata-storm/good-copy")
def opens_all_that_it_listed():
    for path, _ in list(entries()):
        fd = os.open(path, os.O_RDONLY)
        os.read(fd, 500)
        os.close(fd)


@program("redundant-stat/bad-poll")
def waits_by_asking():
    for _ in range(20000):
        try:
            os.stat("ready")
        except FileNotFoundError:
            pass


@setup("lookup-storm/bad", "lookup-storm/good")
def eight_directories():
    for i in range(7):
        files(f"path{i}", 0)
    files("path7", 200)


@program("lookup-storm/bad")
def asks_along_a_path():
    for name in range(200):
        for i in range(8):
            if os.access(f"path{i}/{name}", os.R_OK):
                break


@program("lookup-storm/good")
def lists_the_path():
    there = {name: i for i in range(8) for name in os.listdir(f"path{i}")}
    for name in range(200):
        os.access(f"path{there[str(name)]}/{name}", os.R_OK)


@setup("metadata-storm/bad", "metadata-storm/good")
def a_full_directory():
    files("full", 3000)


def use(directory, name):
    """Some of the files are read."""
    if name.endswith("00"):
        fd = os.open(name, os.O_RDONLY, dir_fd=directory)
        os.read(fd, 100)
        os.close(fd)


@program("metadata-storm/bad")
def asks_what_it_listed():
    full = os.open("full", os.O_RDONLY | os.O_DIRECTORY)
    for name in os.listdir(full):
        os.stat(name, dir_fd=full)
        use(full, name)


@program("metadata-storm/good")
def believes_what_it_listed():
    with os.scandir("full") as entries:
        full = os.open("full", os.O_RDONLY | os.O_DIRECTORY)
        for entry in entries:
            entry.is_dir(follow_symlinks=False)
            use(full, entry.name)


JOB = b"job 1234567890 is done; its result has 240 bytes".ljust(256, b".")


def table_of(jobs):
    """All jobs so far, in a few pieces."""
    piece, rest = divmod(jobs, 4)
    return [JOB * piece] * 4 + [JOB * rest]


@program("whole-rewrite/bad")
def table_after_each_job():
    jobs = 0
    for _ in range(400):
        fd = os.open("table", os.O_RDWR | os.O_CREAT)
        while os.read(fd, 65536):
            pass
        jobs += 1
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)
        for piece in table_of(jobs):
            os.write(fd, piece)
        os.close(fd)


@program("whole-rewrite/good")
def jobs_in_a_log():
    log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(400):
        os.write(log, JOB)
    fd = os.open("table", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    for piece in table_of(400):
        os.write(fd, piece)


@program("whole-rewrite/good-pictures")
def pictures_under_one_name():
    for length in scattered(100, 400_000):
        fd = os.open("latest.png", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(fd, bytes(20_000 + length))
        os.close(fd)


@program("temp-churn/bad")
def files_without_a_name():
    for i in range(200):
        fd = os.open(f"spool-{i}", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        os.unlink(f"spool-{i}")
        os.write(fd, b"x" * 20000)
        os.pread(fd, 20000, 0)
        os.close(fd)


@program("temp-churn/good")
def one_file_in_memory():
    fd = os.memfd_create("spool")
    for _ in range(200):
        os.pwrite(fd, b"x" * 20000, 0)
        os.pread(fd, 20000, 0)
        os.ftruncate(fd, 0)


@setup("duplicate-open/bad", "duplicate-open/good")
def settings():
    files("settings", 2000, 5000)


@program("duplicate-open/bad")
def opens_for_the_size_and_again():
    for _ in range(4):
        for i in range(2000):
            fd = os.open(f"settings/{i}", os.O_RDONLY)
            size = os.fstat(fd).st_size
            again = os.open(f"settings/{i}", os.O_RDONLY)
            os.read(again, size)
            os.close(again)
            os.close(fd)


@program("duplicate-open/good")
def opens_once():
    for _ in range(4):
        for i in range(2000):
            fd = os.open(f"settings/{i}", os.O_RDONLY)
            os.read(fd, os.fstat(fd).st_size)
            os.close(fd)


@setup("process-per-item/bad", "process-per-item/good")
def lines():
    with open("lines", "w") as file:
        file.writelines(f"{i},name-{i}\n" for i in range(300))


def shell(script):
    os.execv("/bin/sh", ["sh", "-c", script])


@program("process-per-item/bad")
def a_process_a_line():
    shell("while read -r line; do expr $line : '.*,name' >/dev/null; done <lines")


@program("process-per-item/good")
def a_process_for_all():
    shell("cut -d, -f2 lines >names")
