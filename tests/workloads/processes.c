/*
 * Many processes. Usage: processes MODE DIR [N]
 *   tree     fork, vfork + exec, clone and a chain of execs, each logging
 *   step N   one link of such a chain: logs, then executes the next
 *   daemon   leaves a daemon behind (double fork, setsid) that works and logs
 *            after the first process has ended
 *   append   two processes append to one file
 *   inherit  parent and child read one inherited descriptor to its end
 *   short N  N processes, one after the other in small groups, that each make
 *            one call on a file and end; prints their ids
 */
#include "truth.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

static const char *self, *dir;
static char buffer[4096];

static void work(const char *name, int rounds)
{
	const char *path = text("%s/%s-%d", dir, name, getpid());
	truth_begin();
	int fd = T(openat, X(.arg = path, .path = path), AT_FDCWD, path, O_RDWR | O_CREAT, 0644);
	ident(fd, path);
	for (long i = 0; i < rounds; i++)
		T(write, X(.fd = fd, .size = 100, .offset = i * 100), fd, buffer, 100);
	close_logged(fd);
	T(unlinkat, X(.arg = path), AT_FDCWD, path, 0);
	truth_end();
}

static void must_end_well(pid_t pid)
{
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		truth_die("child");
}

static int cloned(void *unused)
{
	(void)unused;
	work("cloned", 20);
	_exit(0);
}

static void execute_step(int n)
{
	const char *number = text("%d", n);
	char *const args[] = { (char *)self, "step", (char *)dir, (char *)number, NULL };
	execv(self, args);
	_exit(98);
}

static void tree(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			work("forked", 20);
			pid_t grandchild = fork();
			if (grandchild == 0) {
				work("grandchild", 20);
				_exit(0);
			}
			must_end_well(grandchild);
			_exit(0);
		}
		must_end_well(pid);
	}
	pid_t pid = vfork();
	if (pid == 0)
		execute_step(3);
	must_end_well(pid);
	must_end_well(clone(cloned, stack + sizeof stack, SIGCHLD, NULL));
	work("first", 20);
}

static void daemon_mode(void)
{
	pid_t first = getpid();
	pid_t pid = fork();
	if (pid == 0) {
		if (setsid() < 0 || fork() != 0)
			_exit(0);
		/* Only when the first process is gone, so that the recording
		 * has to last longer than the command. */
		while (kill(first, 0) == 0)
			usleep(1000);
		usleep(100000);
		work("daemon", 50);
		_exit(0);
	}
	must_end_well(pid);
	work("first", 5);
}

static void append(void)
{
	const char *path = text("%s/appended", dir);
	pid_t pid = fork();
	truth_begin();
	int fd = T(openat, X(.arg = path, .path = path, .flags = "O_WRONLY|O_CREAT|O_APPEND"),
		   AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0644);
	ident(fd, path);
	for (int i = 0; i < 2000; i++) {
		long size = pid ? 7 : 11;
		T(write, X(.fd = fd, .size = size), fd, buffer, size);
	}
	close_logged(fd);
	truth_end();
	if (pid == 0)
		_exit(0);
	must_end_well(pid);
}

static void inherit(void)
{
	const char *path = text("%s/shared", dir);
	int fd = open(path, O_RDONLY);
	pid_t pid = fork();
	truth_begin();
	ident(fd, path);
	while (T(read, X(.fd = fd, .size = 512), fd, buffer, 512) > 0)
		;
	truth_end();
	if (pid == 0)
		_exit(0);
	must_end_well(pid);
}

static void short_lived(long count)
{
	struct stat st;
	pid_t group[8];
	for (long made = 0; made < count;) {
		int n = 0;
		for (; n < 8 && made < count; n++, made++) {
			group[n] = fork();
			if (group[n] < 0)
				truth_die("fork");
			if (group[n] == 0) {
				syscall(SYS_newfstatat, AT_FDCWD, dir, &st, 0);
				_exit(0);
			}
			printf("%d\n", group[n]);
			/* Children must not inherit unwritten output. */
			fflush(stdout);
		}
		while (n)
			must_end_well(group[--n]);
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		truth_die("usage: processes MODE DIR [N]");
	const char *mode = argv[1];
	self = argv[0];
	dir = argv[2];
	int n = argc > 3 ? atoi(argv[3]) : 0;
	if (!strcmp(mode, "tree")) {
		tree();
	} else if (!strcmp(mode, "step")) {
		work("step", 10);
		if (n > 0)
			execute_step(n - 1);
	} else if (!strcmp(mode, "daemon")) {
		daemon_mode();
	} else if (!strcmp(mode, "append")) {
		append();
	} else if (!strcmp(mode, "inherit")) {
		inherit();
	} else if (!strcmp(mode, "short")) {
		short_lived(n);
	} else {
		truth_die(mode);
	}
	return 0;
}
