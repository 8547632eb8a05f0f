/*
 * Calls that seccomp refuses, between calls that it lets pass. Usage: refused DIR
 */
#include "truth.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

/* mkdirat fails with EACCES, getxattr with ENODATA. */
static void filter(void)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdirat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getxattr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENODATA),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(program) / sizeof(*program), program };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &prog))
		truth_die("seccomp");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	char buffer[16];
	const char *dir = text("%s/new", argv[1]);
	filter();
	truth_begin();
	for (int i = 0; i < 3; i++) {
		T(mkdirat, X(.arg = dir, .path = dir), AT_FDCWD, dir, 0755);
#ifdef SYS_access
		T(access, X(.arg = argv[1], .path = argv[1]), argv[1], F_OK);
#else
		T(faccessat, X(.arg = argv[1], .path = argv[1]), AT_FDCWD, argv[1], F_OK);
#endif
		T(getxattr, X(.arg = argv[1], .size = 16), argv[1], "user.x", buffer, 16L);
		T(getxattr, X(.arg = argv[1], .size = 16), argv[1], "user.x", buffer, 16L);
	}
	truth_end();
	return 0;
}
