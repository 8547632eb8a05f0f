/*
 * Paths and identities. Usage: names MODE DIR, DIR empty and absolute.
 *   moves    paths after rename, unlink, link, chdir, through descriptors of
 *            directories and symbolic links
 *   strange  names of any bytes, and a path of 4,095 bytes
 *   recycle  creates and removes files until an inode number comes back; prints
 *            how many times it did
 *   long     300,000 files with paths of nearly 4,095 bytes, one at a time; their
 *            calls are not logged
 */
#include "truth.h"

static const char *dir;
static char buffer[4096];

static const char *in_dir(const char *name)
{
	return text("%s/%s", dir, name);
}

static int opened(const char *argument, int flags, const char *path)
{
	int fd = T(openat, X(.fd = NONE, .arg = argument, .path = path), AT_FDCWD, argument, flags,
		   0644);
	if (fd < 0)
		truth_die(argument);
	return ident(fd, path);
}

static void touch_io(int fd, long offset)
{
	T(pwrite64, X(.fd = fd, .size = 10, .offset = offset), fd, buffer, 10, offset);
}

static void make_directory(const char *path)
{
	T(mkdirat, X(.arg = path, .path = path), AT_FDCWD, path, 0755);
}

static void moves(void)
{
	/* The file is renamed while open. */
	int fd = opened(in_dir("before"), O_RDWR | O_CREAT, in_dir("before"));
	touch_io(fd, 0);
	T(renameat, X(.arg = in_dir("before"), .arg2 = in_dir("after")), AT_FDCWD, in_dir("before"),
	  AT_FDCWD, in_dir("after"));
	set_path(fd, in_dir("after"));
	touch_io(fd, 10);
	close_logged(fd);

	/* A directory above it is renamed while it is open. */
	make_directory(in_dir("old"));
	make_directory(in_dir("old/sub"));
	fd = opened(in_dir("old/sub/file"), O_RDWR | O_CREAT, in_dir("old/sub/file"));
	touch_io(fd, 0);
	T(renameat2, X(.arg = in_dir("old"), .arg2 = in_dir("new")), AT_FDCWD, in_dir("old"),
	  AT_FDCWD, in_dir("new"), 0);
	set_path(fd, in_dir("new/sub/file"));
	touch_io(fd, 10);
	close_logged(fd);

	/* The name is removed while it is open, and taken by another file. */
	fd = opened(in_dir("gone"), O_RDWR | O_CREAT, in_dir("gone"));
	touch_io(fd, 0);
	T(unlinkat, X(.arg = in_dir("gone")), AT_FDCWD, in_dir("gone"), 0);
	/* What the path of a nameless file is called is not ours to say; the
	 * identity must stay. */
	set_path(fd, NO_TEXT);
	touch_io(fd, 10);
	int other = opened(in_dir("gone"), O_RDWR | O_CREAT, in_dir("gone"));
	touch_io(other, 0);
	touch_io(fd, 20);
	close_logged(other);
	close_logged(fd);

	/* Never had a name. */
	fd = T(openat, X(.arg = dir), AT_FDCWD, dir, O_TMPFILE | O_RDWR, 0600);
	if (fd >= 0) {
		ident(fd, NO_TEXT);
		touch_io(fd, 0);
		close_logged(fd);
	}

	/* Two names, one file. */
	fd = opened(in_dir("one"), O_RDWR | O_CREAT, in_dir("one"));
	T(linkat, X(.arg = in_dir("one"), .arg2 = in_dir("two")), AT_FDCWD, in_dir("one"), AT_FDCWD,
	  in_dir("two"), 0);
	other = opened(in_dir("two"), O_RDWR, NO_TEXT);
	touch_io(other, 0);
	touch_io(fd, 10);
	close_logged(other);
	close_logged(fd);

	/* Relative paths after chdir, "..", "." and doubled slashes. */
	make_directory(in_dir("cwd"));
	T(chdir, X(.arg = "cwd", .path = in_dir("cwd")), "cwd");
	fd = opened("here", O_RDWR | O_CREAT, in_dir("cwd/here"));
	touch_io(fd, 0);
	close_logged(fd);
	fd = opened("..//./cwd/../cwd/here", O_RDWR, in_dir("cwd/here"));
	touch_io(fd, 0);
	close_logged(fd);
	struct stat st;
	T(newfstatat, X(.arg = "here", .path = in_dir("cwd/here")), AT_FDCWD, "here", &st, 0);
	T(chdir, X(.arg = ".."), "..");

	/* Relative to the descriptor of a directory, also one that was moved. */
	int at = opened(in_dir("cwd"), O_RDONLY | O_DIRECTORY, in_dir("cwd"));
	fd = T(openat, X(.arg = "here", .path = in_dir("cwd/here")), at, "here", O_RDWR, 0);
	ident(fd, in_dir("cwd/here"));
	close_logged(fd);
	T(renameat, X(.arg = "cwd", .arg2 = "cwd2"), AT_FDCWD, "cwd", AT_FDCWD, "cwd2");
	set_path(at, in_dir("cwd2"));
	fd = T(openat, X(.arg = "here", .path = in_dir("cwd2/here")), at, "here", O_RDWR, 0);
	ident(fd, in_dir("cwd2/here"));
	touch_io(fd, 0);
	close_logged(fd);
	T(unlinkat, X(.arg = "here"), at, "here", 0);
	close_logged(at);

	/* Through a symbolic link to a directory: the path is the file's own. */
	make_directory(in_dir("real"));
	T(symlinkat, X(.arg = "real", .arg2 = in_dir("link")), "real", AT_FDCWD, in_dir("link"));
	fd = opened(in_dir("link/file"), O_RDWR | O_CREAT, in_dir("real/file"));
	touch_io(fd, 0);
	close_logged(fd);
	T(chdir, X(.arg = in_dir("link")), in_dir("link"));
	/* That has shown where the link leads: calls that open nothing have that path, too. */
	T(faccessat, X(.arg = in_dir("link/file"), .path = in_dir("real/file")), AT_FDCWD,
	  in_dir("link/file"), F_OK);
	T(renameat,
	  X(.arg = in_dir("link/file"), .path = in_dir("real/file"), .arg2 = in_dir("link/moved"),
	    .path2 = in_dir("real/moved")),
	  AT_FDCWD, in_dir("link/file"), AT_FDCWD, in_dir("link/moved"));
	T(renameat,
	  X(.arg = in_dir("link/moved"), .path = in_dir("real/moved"), .arg2 = in_dir("link/file"),
	    .path2 = in_dir("real/file")),
	  AT_FDCWD, in_dir("link/moved"), AT_FDCWD, in_dir("link/file"));
	fd = opened("file", O_RDWR, in_dir("real/file"));
	touch_io(fd, 0);
	close_logged(fd);
	T(fchdir, X(.fd = 987), 987);

	/* One open file, several descriptors: one position. */
	fd = opened("file", O_RDWR, in_dir("real/file"));
	other = T(dup, X(.fd = fd), fd);
	ident(other, in_dir("real/file"));
	T(write, X(.fd = fd, .size = 30, .offset = 0), fd, buffer, 30);
	T(write, X(.fd = other, .size = 30, .offset = 30), other, buffer, 30);
	T(lseek, X(.fd = other), other, 5, SEEK_SET);
	T(read, X(.fd = fd, .size = 3, .offset = 5), fd, buffer, 3);
	T(read, X(.fd = other, .size = 4, .offset = 8), other, buffer, 4);
	close_logged(other);
	close_logged(fd);

	/* O_APPEND decides where a write goes, and leaves reads alone. */
	fd = opened("file", O_RDWR | O_APPEND, in_dir("real/file"));
	T(read, X(.fd = fd, .size = 4, .offset = 0), fd, buffer, 4);
	T(write, X(.fd = fd, .size = 6, .offset = 60), fd, buffer, 6);
	T(lseek, X(.fd = fd), fd, 0, SEEK_SET);
	T(write, X(.fd = fd, .size = 4, .offset = 66), fd, buffer, 4);
	T(read, X(.fd = fd, .size = 4, .offset = 70), fd, buffer, 4);
	close_logged(fd);
}

static void strange(void)
{
	static const char *const names[] = {
		"new\nline",
		"quo'te \"double\" `back`",
		"esc\033[31mred\033[0m\a\b",
		"back\\slash \\x41 \\n",
		"not utf-8 \xff\xfe\x80 end",
		"cut sequence \xe2\x82",
		"\xf0\x9f\x93\x81 \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d",
		"<img src=x onerror=alert(1)>&amp;",
		"'; DROP TABLE syscalls; --",
		"percent %s %n %d",
		" leading and trailing ",
		"-rf",
		"tab\tcarriage\r\x7f\x01",
		"right-to-left \xe2\x80\xae txt",
	};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		const char *path = in_dir(names[i]);
		int fd = opened(path, O_RDWR | O_CREAT, path);
		touch_io(fd, 0);
		close_logged(fd);
		struct stat st;
		T(newfstatat, X(.arg = path, .path = path), AT_FDCWD, path, &st, 0);
	}

	/* Directories down to where the path of a file is as long as the kernel
	 * takes one: 4,095 bytes and the terminator. */
	static char component[256], longest[4096];
	memset(component, 'x', 200);
	strcpy(longest, dir);
	size_t length = strlen(longest);
	while (length + 1 + 200 + 2 <= 4095) {
		longest[length++] = '/';
		memcpy(longest + length, component, 201);
		length += 200;
		make_directory(text("%s", longest));
	}
	longest[length++] = '/';
	memset(longest + length, 'f', 4095 - length);
	longest[4095] = 0;
	const char *path = text("%s", longest);
	int fd = opened(path, O_RDWR | O_CREAT, path);
	touch_io(fd, 0);
	close_logged(fd);
	/* One more is refused. */
	static char too_long[4200];
	memcpy(too_long, longest, 4095);
	too_long[4095] = 'f';
	T(openat, X(.fd = NONE, .ino = NONE), AT_FDCWD, too_long, O_RDONLY, 0);
}

static int recycle(void)
{
	const char *path = in_dir("recycled");
	long first = -1;
	int again = 0;
	for (int i = 0; i < 200 && again < 5; i++) {
		int fd = opened(path, O_RDWR | O_CREAT | O_EXCL, path);
		if (first < 0)
			first = truth_fds[fd].ino;
		else if (truth_fds[fd].ino == first)
			again++;
		touch_io(fd, 0);
		close_logged(fd);
		T(unlinkat, X(.arg = path), AT_FDCWD, path, 0);
	}
	return again;
}

static void long_paths(void)
{
	char name[241] = "";
	memset(name, 'd', 240);
	while (strlen(dir) + 241 < 4095 - 241) {
		if (mkdir(name, 0755) || chdir(name))
			truth_die("mkdir");
		dir = text("%s/%s", dir, name);
	}
	for (int n = 0; n < 300000; n++) {
		memset(name, 'f', 240);
		name[snprintf(name, sizeof(name), "%d", n)] = '.';
		int fd = open(name, O_CREAT | O_WRONLY, 0644);
		if (fd < 0 || close(fd) || unlink(name))
			truth_die("a file");
	}
}

int main(int argc, char **argv)
{
	if (argc != 3 || chdir(argv[2]))
		truth_die("usage: names MODE DIR");
	dir = argv[2];
	int again = 0;
	truth_begin();
	if (!strcmp(argv[1], "moves"))
		moves();
	else if (!strcmp(argv[1], "strange"))
		strange();
	else if (!strcmp(argv[1], "recycle"))
		again = recycle();
	else if (!strcmp(argv[1], "long"))
		long_paths();
	else
		truth_die(argv[1]);
	truth_end();
	printf("%d\n", again);
	return 0;
}
