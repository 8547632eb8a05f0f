/*
 * The same few bytes read in places where paths are hard: overlays, bind
 * mounts, other roots and mount namespaces, files without a name. Each read has
 * a size of its own, by which the test knows it. Usage: places DIR, DIR empty and
 * absolute, in a mount namespace of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *dir;
static char buffer[4096];

static void die(const char *what)
{
	fprintf(stderr, "places: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* A path in the directory; eight may be in use at a time. */
static const char *in(const char *format, ...)
{
	static char paths[8][4096];
	static int next;
	char *path = paths[next++ % 8];
	int n = snprintf(path, 2048, "%s/", dir);
	va_list args;
	va_start(args, format);
	vsnprintf(path + n, 2048, format, args);
	va_end(args);
	return path;
}

static void make_dir(const char *name)
{
	if (mkdir(in("%s", name), 0755))
		die(name);
}

static void make_file(const char *name)
{
	int fd = open(in("%s", name), O_CREAT | O_WRONLY, 0644);
	if (fd < 0 || write(fd, buffer, 4000) != 4000)
		die(name);
	close(fd);
}

static void mounted(const char *source, const char *target, const char *type, int flags,
		    const char *options)
{
	if (mount(source, target, type, flags, options))
		die(target);
}

static void read_fd(int fd, int size)
{
	if (pread(fd, buffer, size, 0) != size)
		die("pread");
}

static void read_path(const char *path, int size)
{
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		die(path);
	read_fd(fd, size);
	close(fd);
}

static void described(const char *path)
{
	struct stat st;
	if (stat(path, &st))
		die(path);
}

static void in_child(void (*what)(void))
{
	pid_t pid = fork();
	if (!pid) {
		what();
		exit(0);
	}
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		die("child");
}

static void chrooted(void)
{
	if (chroot(in("jail")) || chdir("/"))
		die("chroot");
	read_path("/inside/file", 10);
	read_path("inside/file", 11);
	described("/inside/file");
	described("/../inside/file");
	rename("/inside/file", "/inside/renamed");
}

static void another_namespace(void)
{
	if (unshare(CLONE_NEWNS))
		die("unshare");
	mounted(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	mounted(in("source"), in("bind2"), NULL, MS_BIND, NULL);
	read_path(in("bind2/bound"), 20);
	/* A file system that the recorder's namespace does not show. */
	mounted("none", in("bind2"), "tmpfs", 0, NULL);
	make_file("bind2/private");
	read_path(in("bind2/private"), 21);
}

/* As container runtimes do: a root of its own in a mount namespace of its own. */
static void container(void)
{
	if (unshare(CLONE_NEWNS))
		die("unshare");
	mounted(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	mounted(in("overlay"), in("overlay"), NULL, MS_BIND | MS_REC, NULL);
	if (chdir(in("overlay")) || syscall(SYS_pivot_root, ".", "."))
		die("pivot_root");
	if (umount2(".", MNT_DETACH) || chdir("/"))
		die("umount");
	read_path("/lower", 22);
	described("/lower");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	dir = argv[1];
	const char *dirs[] = { "lower", "upper", "work",   "overlay", "source",	    "bind",
			       "bind2", "tmp",	 "detach", "jail",    "jail/inside" };
	for (unsigned i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
		make_dir(dirs[i]);
	/* The lower layer on a file system of its own: then stat shows another
	 * device than the overlay's. */
	mounted("none", in("lower"), "tmpfs", 0, NULL);
	make_file("lower/lower");
	make_file("lower/described");
	make_file("source/bound");
	make_file("jail/inside/file");
	char options[4096];
	snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s,workdir=%s", in("lower"),
		 in("upper"), in("work"));
	mounted("overlay", in("overlay"), "overlay", 0, options);
	mounted(in("source"), in("bind"), NULL, MS_BIND, NULL);
	mounted("none", in("tmp"), "tmpfs", 0, NULL);
	make_file("tmp/file");
	make_file("tmp/gone");

	read_path(in("overlay/lower"), 1);
	described(in("overlay/lower"));
	described(in("overlay/described"));
	read_path(in("overlay/described"), 2);

	read_path(in("bind/bound"), 3);
	read_path(in("source/bound"), 4);
	read_path(in("tmp/file"), 5);

	int fd = memfd_create("in memory", 0);
	if (fd < 0 || write(fd, buffer, 100) != 100)
		die("memfd");
	read_fd(fd, 6);
	fd = open(in("tmp"), O_TMPFILE | O_RDWR, 0600);
	if (fd < 0 || write(fd, buffer, 100) != 100)
		die("O_TMPFILE");
	read_fd(fd, 7);
	fd = open(in("tmp/gone"), O_RDONLY);
	if (unlink(in("tmp/gone")))
		die("unlink");
	read_fd(fd, 8);
	if (link(in("tmp/file"), in("tmp/linked")))
		die("link");
	read_path(in("tmp/linked"), 9);

	in_child(chrooted);
	in_child(another_namespace);
	in_child(container);

	/* A mount that is in no tree any longer. */
	mounted("none", in("detach"), "tmpfs", 0, NULL);
	int detached = open(in("detach"), O_PATH);
	if (detached < 0 || umount2(in("detach"), MNT_DETACH))
		die("detach");
	fd = openat(detached, "new", O_CREAT | O_RDWR, 0644);
	if (fd < 0 || write(fd, buffer, 100) != 100)
		die("detached file");
	read_fd(fd, 23);
	return 0;
}
