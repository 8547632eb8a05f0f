/*
 * Every call of classes socket and wait, made with success and with failure where it can
 * be had. Usage: sockets DIR
 */
#include "truth.h"

#include <arpa/inet.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#ifndef SYS_futex_wake
#define SYS_futex_wake 454
#define SYS_futex_wait 455
#define SYS_futex_requeue 456
#endif
#define BAD_FD 987
/* None of these is recorded unless it is asked for. */
#define SOCKET .not_storage = 1

static const char *dir;
static char buffer[65536];

/* The address of a socket on the loopback interface, as column args has it. */
static const char *name_of(int fd, struct sockaddr_in *address)
{
	socklen_t length = sizeof *address;
	if (getsockname(fd, (struct sockaddr *)address, &length))
		truth_die("getsockname");
	truth_note("getsockname", X(.fd = fd, SOCKET), 0);
	return text("127.0.0.1:%d", ntohs(address->sin_port));
}

/* Learns which inode a descriptor that a logged call has made is of. */
static void of_inode(int fd)
{
	struct stat st;
	if (fstat(fd, &st))
		truth_die("fstat");
	struct truth_entry *made = &truth_current->entries[truth_current->count - 1];
	made->x.dev = (long)st.st_dev;
	made->x.ino = (long)st.st_ino;
}

static long new_socket(int domain, int type, const char *args)
{
	long fd = T(socket, X(.args = args, SOCKET), domain, type, 0);
	of_inode((int)fd);
	return fd;
}

static void inet_calls(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in peer;
	socklen_t length = sizeof address;
	int one = 1, answer = 0;
	long server = new_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC,
				 "domain=AF_INET, type=SOCK_STREAM|SOCK_CLOEXEC, "
				 "protocol=IPPROTO_IP");
	T(socket, X(.args = "domain=AF_INET, type=SOCK_STREAM, protocol=IPPROTO_UDP", SOCKET),
	  AF_INET, SOCK_STREAM, IPPROTO_UDP);
	T(setsockopt,
	  X(.fd = server, .args = "level=SOL_SOCKET, optname=SO_REUSEADDR, optval=[1], optlen=4",
	    SOCKET),
	  server, SOL_SOCKET, SO_REUSEADDR, &one, 4);
	T(setsockopt, X(.fd = BAD_FD, SOCKET), BAD_FD, SOL_SOCKET, SO_REUSEADDR, &one, 4);
	length = sizeof answer;
	T(getsockopt,
	  X(.fd = server, .args = "level=SOL_SOCKET, optname=SO_TYPE, optval=[1]", SOCKET), server,
	  SOL_SOCKET, SO_TYPE, &answer, &length);
	T(getsockopt, X(.fd = server, .args = "level=SOL_TCP, optname=0x3e7 /* TCP_??? */", SOCKET),
	  server, IPPROTO_TCP, 999, &answer, &length);
	T(bind, X(.fd = server, .args = "addr=127.0.0.1:0, addrlen=16", SOCKET), server, &address,
	  16);
	T(bind, X(.fd = server, .args = "addr=127.0.0.1:0, addrlen=16", SOCKET), server, &address,
	  16);
	T(listen, X(.fd = server, .args = "backlog=3", SOCKET), server, 3);
	T(listen, X(.fd = BAD_FD, .args = "backlog=3", SOCKET), BAD_FD, 3);
	const char *name = name_of((int)server, &address);
	length = sizeof peer;
	T(getsockname, X(.fd = server, .args = text("addr=%s", name), SOCKET), server, &peer,
	  &length);
	/* A room that is too small: what lies behind it says nothing of the address. */
	length = 4;
	T(getsockname, X(.fd = server, .args = "addr={sa_family=AF_INET, ...}", SOCKET), server,
	  &peer, &length);
	T(getsockname, X(.fd = BAD_FD, SOCKET), BAD_FD, &peer, &length);
	T(getpeername, X(.fd = server, SOCKET), server, &peer, &length);

	long client = new_socket(AF_INET, SOCK_STREAM,
				 "domain=AF_INET, type=SOCK_STREAM, protocol=IPPROTO_IP");
	T(connect, X(.fd = client, .args = text("addr=%s, addrlen=16", name), SOCKET), client,
	  &address, 16);
	T(connect, X(.fd = client, .args = text("addr=%s, addrlen=16", name), SOCKET), client,
	  &address, 16);
	struct sockaddr_in own;
	const char *client_name = name_of((int)client, &own);
	length = sizeof peer;
	long taken = T(accept, X(.fd = server, .args = text("addr=%s", client_name), SOCKET),
		       server, &peer, &length);
	of_inode((int)taken);
	T(accept, X(.fd = BAD_FD, SOCKET), BAD_FD, NULL, NULL);
	length = sizeof peer;
	T(getpeername, X(.fd = client, .args = text("addr=%s", name), SOCKET), client, &peer,
	  &length);

	struct iovec two[2] = { { buffer, 100 }, { buffer + 100, 33 } };
	struct msghdr message = { .msg_iov = two, .msg_iovlen = 2 };
	T(sendto,
	  X(.fd = client, .size = 777, .flags = "MSG_NOSIGNAL", .args = "addr=NULL, addrlen=0",
	    SOCKET),
	  client, buffer, 777, MSG_NOSIGNAL, NULL, 0);
	T(sendto, X(.fd = BAD_FD, .size = 7, .flags = "0", SOCKET), BAD_FD, buffer, 7, 0, NULL, 0);
	T(recvfrom, X(.fd = taken, .size = 1000, .flags = "MSG_PEEK", .args = "addr=NULL", SOCKET),
	  taken, buffer, 1000, MSG_PEEK, NULL, NULL);
	T(recvfrom, X(.fd = taken, .size = 1000, .flags = "0", SOCKET), taken, buffer, 1000, 0,
	  NULL, NULL);
	T(recvfrom, X(.fd = taken, .size = 10, .flags = "MSG_DONTWAIT", SOCKET), taken, buffer, 10,
	  MSG_DONTWAIT, NULL, NULL);
	T(sendmsg, X(.fd = client, .size = 133, .flags = "0", SOCKET), client, &message, 0);
	T(sendmsg, X(.fd = BAD_FD, .size = 133, SOCKET), BAD_FD, &message, 0);
	T(sendmsg, X(.fd = client, .size = NONE, SOCKET), client, 1, 0);
	T(recvmsg, X(.fd = taken, .size = 133, .flags = "MSG_WAITALL", SOCKET), taken, &message,
	  MSG_WAITALL);
	T(recvmsg, X(.fd = taken, .size = 133, SOCKET), taken, &message, MSG_DONTWAIT);
	/* More segments than the kernel side reads at a time. */
	struct iovec many[50];
	for (int i = 0; i < 50; i++)
		many[i] = (struct iovec){ buffer + 100 * i, 10 + i };
	message.msg_iov = many;
	message.msg_iovlen = 50;
	T(sendmsg, X(.fd = client, .size = 50 * 10 + 49 * 25, SOCKET), client, &message, 0);
	T(shutdown, X(.fd = client, .args = "how=SHUT_WR", SOCKET), client, SHUT_WR);
	T(shutdown, X(.fd = BAD_FD, .args = "how=SHUT_RDWR", SOCKET), BAD_FD, SHUT_RDWR);

	long second = new_socket(AF_INET, SOCK_STREAM, NULL);
	T(connect, X(.fd = second, SOCKET), second, &address, 16);
	client_name = name_of((int)second, &own);
	length = sizeof peer;
	taken = T(accept4,
		  X(.fd = server, .flags = "SOCK_CLOEXEC|SOCK_NONBLOCK",
		    .args = text("addr=%s", client_name), SOCKET),
		  server, &peer, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
	of_inode((int)taken);
	T(accept4, X(.fd = server, .flags = "0x1 /* SOCK_??? */", SOCKET), server, NULL, NULL, 1);
}

static void datagram_calls(void)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6,
					.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	socklen_t length = sizeof address;
	long fd = T(socket,
		    X(.args = "domain=AF_INET6, type=SOCK_DGRAM, protocol=IPPROTO_UDP", SOCKET),
		    AF_INET6, SOCK_DGRAM, IPPROTO_UDP);
	if (fd < 0)
		truth_die("a socket of IPv6");
	T(bind, X(.fd = fd, .args = "addr=[::1]:0, addrlen=28", SOCKET), fd, &address, length);
	if (getsockname((int)fd, (struct sockaddr *)&address, &length))
		truth_die("getsockname");
	truth_note("getsockname", X(.fd = fd, SOCKET), 0);
	const char *name = text("addr=[::1]:%d", ntohs(address.sin6_port));
	T(sendto,
	  X(.fd = fd, .size = 70, .flags = "0", .args = text("%s, addrlen=28", name), SOCKET), fd,
	  buffer, 70, 0, &address, 28);
	struct sockaddr_in6 from;
	length = sizeof from;
	T(recvfrom, X(.fd = fd, .size = 500, .flags = "0", .args = name, SOCKET), fd, buffer, 500,
	  0, &from, &length);
	struct iovec parts[3] = { { buffer, 11 }, { buffer, 22 }, { buffer, 44 } };
	struct mmsghdr messages[3];
	memset(messages, 0, sizeof messages);
	for (int i = 0; i < 3; i++) {
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
		messages[i].msg_hdr.msg_name = &address;
		messages[i].msg_hdr.msg_namelen = sizeof address;
	}
	T(sendmmsg, X(.fd = fd, .size = NONE, .bytes = 77, .flags = "0", .args = "vlen=3", SOCKET),
	  fd, messages, 3, 0);
	T(sendmmsg, X(.fd = BAD_FD, .size = NONE, SOCKET), BAD_FD, messages, 3, 0);
	struct timespec soon = { 0, 5000000 };
	T(recvmmsg,
	  X(.fd = fd, .bytes = 33, .flags = "0",
	    .args = "vlen=2, timeout={tv_sec=0, tv_nsec=5000000}", SOCKET),
	  fd, messages, 2, 0, &soon);
	/* The third message is longer than the room for it. */
	T(recvmmsg,
	  X(.fd = fd, .bytes = 11, .flags = "MSG_DONTWAIT", .args = "vlen=3, timeout=NULL", SOCKET),
	  fd, messages, 3, MSG_DONTWAIT, NULL);
	T(recvmmsg, X(.fd = fd, .bytes = NONE, SOCKET), fd, messages, 2, MSG_DONTWAIT, NULL);
}

static void unix_calls(void)
{
	int ends[2];
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", dir);
	long length = (long)(sizeof(sa_family_t) + strlen(address.sun_path) + 1);
	T(socketpair, X(SOCKET), AF_UNIX, SOCK_STREAM, 0, ends);
	truth_current->entries[truth_current->count - 1].x.args =
		text("domain=AF_UNIX, type=SOCK_STREAM, protocol=0, sv=[%d, %d]", ends[0], ends[1]);
	T(socketpair, X(.args = "domain=AF_INET, type=SOCK_STREAM, protocol=0", SOCKET), AF_INET,
	  SOCK_STREAM, 0, ends);
	long fd = new_socket(AF_UNIX, SOCK_STREAM, "domain=AF_UNIX, type=SOCK_STREAM, protocol=0");
	T(connect,
	  X(.fd = fd, .args = text("addr=\"%s\", addrlen=%ld", address.sun_path, length), SOCKET),
	  fd, &address, length);
	T(bind,
	  X(.fd = fd, .args = text("addr=\"%s\", addrlen=%ld", address.sun_path, length), SOCKET),
	  fd, &address, length);
	struct sockaddr_un abstract = { .sun_family = AF_UNIX, .sun_path = "\0fathom-truth" };
	long other = new_socket(AF_UNIX, SOCK_DGRAM, NULL);
	T(bind, X(.fd = other, .args = "addr=@\"fathom-truth\", addrlen=15", SOCKET), other,
	  &abstract, 15);
#ifdef SYS_pipe
	T(pipe, X(SOCKET), ends);
	truth_current->entries[truth_current->count - 1].x.args =
		text("pipefd=[%d, %d]", ends[0], ends[1]);
	T(pipe, X(SOCKET), 1);
#endif
	T(pipe2, X(.flags = "O_NONBLOCK|O_CLOEXEC", SOCKET), ends, O_NONBLOCK | O_CLOEXEC);
	truth_current->entries[truth_current->count - 1].x.args =
		text("pipefd=[%d, %d]", ends[0], ends[1]);
	T(pipe2, X(.flags = "O_DSYNC", SOCKET), ends, O_DSYNC);
}

static void poll_calls(void)
{
	int ends[2];
	if (pipe2(ends, 0))
		truth_die("pipe2");
	/* The pipe that this made, which the recording has as well. */
	truth_note("pipe2", X(.args = text("pipefd=[%d, %d]", ends[0], ends[1]), SOCKET), 0);
	struct pollfd two[2] = { { ends[0], POLLIN, 0 }, { ends[1], POLLOUT | POLLPRI, 0 } };
	const char *fds = text("fds=[{fd=%d, events=POLLIN}, {fd=%d, events=POLLPRI|POLLOUT, "
			       "revents=POLLOUT}], nfds=2",
			       ends[0], ends[1]);
	struct timespec wait = { 1, 234567 };
	struct timespec brief = { 0, 1000 };
	fd_set set;
#ifdef SYS_poll
	struct timeval brief_too = { 0, 7 };
	T(poll, X(.args = text("%s, timeout=-1", fds), SOCKET), two, 2, -1);
	T(poll, X(.args = text("fds=[{fd=%d, events=POLLIN}], nfds=1, timeout=2", ends[0]), SOCKET),
	  two, 1, 2);
	T(poll, X(.args = "nfds=1, timeout=0", SOCKET), 1, 1, 0);
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	T(select, X(.args = text("n=%d, timeout={tv_sec=0, tv_usec=7}", ends[0] + 1), SOCKET),
	  ends[0] + 1, &set, NULL, NULL, &brief_too);
	T(select, X(.args = "n=-1, timeout=NULL", SOCKET), -1, NULL, NULL, NULL, NULL);
#endif
	T(ppoll, X(.args = text("%s, timeout={tv_sec=1, tv_nsec=234567}", fds), SOCKET), two, 2,
	  &wait, NULL, 0);
	T(ppoll, X(.args = "nfds=1, timeout=NULL", SOCKET), 1, 1, NULL, NULL, 0);
	FD_ZERO(&set);
	FD_SET(ends[1], &set);
	T(pselect6, X(.args = text("n=%d, timeout=NULL", ends[1] + 1), SOCKET), ends[1] + 1, NULL,
	  &set, NULL, NULL, NULL);
	/* The kernel overwrites the time with what is left. */
	T(pselect6, X(.args = "n=0, timeout={tv_sec=0, tv_nsec=1000}", SOCKET), 0, NULL, NULL, NULL,
	  &brief, NULL);
	T(pselect6, X(.args = "n=-1, timeout=NULL", SOCKET), -1, NULL, NULL, NULL, NULL, NULL);

#ifdef SYS_epoll_create
	T(epoll_create, X(.args = "hint=5", SOCKET), 5);
	T(epoll_create, X(.args = "hint=0", SOCKET), 0);
#endif
	long epoll = T(epoll_create1, X(.flags = "EPOLL_CLOEXEC", SOCKET), EPOLL_CLOEXEC);
	T(epoll_create1, X(.flags = "0x3 /* EPOLL_??? */", SOCKET), 3);
	struct epoll_event event = { .events = EPOLLOUT | EPOLLET, .data.u64 = 77 };
	T(epoll_ctl,
	  X(.fd = epoll, SOCKET,
	    .args = text("op=EPOLL_CTL_ADD, watched_fd=%d, event={events=EPOLLOUT|EPOLLET, "
			 "data={u32=77, u64=77}}",
			 ends[1])),
	  epoll, EPOLL_CTL_ADD, ends[1], &event);
	T(epoll_ctl, X(.fd = epoll, .args = "op=EPOLL_CTL_DEL, watched_fd=987", SOCKET), epoll,
	  EPOLL_CTL_DEL, BAD_FD, &event);
	struct epoll_event events[4];
#ifdef SYS_epoll_wait
	T(epoll_wait, X(.fd = epoll, .args = "maxevents=4, timeout=100", SOCKET), epoll, events, 4,
	  100);
	T(epoll_wait, X(.fd = epoll, .args = "maxevents=0, timeout=0", SOCKET), epoll, events, 0,
	  0);
#endif
	T(epoll_pwait, X(.fd = epoll, .args = "maxevents=4, timeout=1", SOCKET), epoll, events, 4,
	  1, NULL, 8);
	T(epoll_pwait, X(.fd = BAD_FD, .args = "maxevents=4, timeout=1", SOCKET), BAD_FD, events, 4,
	  1, NULL, 8);
	brief = (struct timespec){ 0, 1000 };
	T(epoll_pwait2,
	  X(.fd = epoll, .args = "maxevents=4, timeout={tv_sec=0, tv_nsec=1000}", SOCKET), epoll,
	  events, 4, &brief, NULL, 8);
	T(epoll_pwait2, X(.fd = BAD_FD, .args = "maxevents=4, timeout=NULL", SOCKET), BAD_FD,
	  events, 4, NULL, NULL, 8);
}

static void nothing(int number)
{
	(void)number;
}

static void waiting_calls(void)
{
	static unsigned word = 3;
	const char *at = text("uaddr=%p", (void *)&word);
	struct timespec brief = { 0, 1000 }, wrong = { 0, -1 };
	T(futex, X(.args = text("%s, op=FUTEX_WAKE_PRIVATE, val=7", at), SOCKET), &word,
	  FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 7, NULL, NULL, 0);
	T(futex,
	  X(.args = text("%s, op=FUTEX_WAIT_PRIVATE, val=3, timeout={tv_sec=0, tv_nsec=1000}", at),
	    SOCKET),
	  &word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 3, &brief, NULL, 0);
	T(futex,
	  X(.args = text("%s, op=FUTEX_WAIT_BITSET|FUTEX_CLOCK_REALTIME, val=4, timeout=NULL", at),
	    SOCKET),
	  &word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 4, NULL, NULL, 1);
	T(futex_wake,
	  X(.args = text("%s, mask=0xff, nr=2", at), .flags = "FUTEX2_SIZE_U32|FUTEX2_PRIVATE",
	    SOCKET),
	  &word, 0xff, 2, 2 | 128);
	T(futex_wake, X(.flags = "FUTEX2_SIZE_U8", SOCKET), &word, 0xff, 2, 0);
	T(futex_wait,
	  X(.args = text("%s, val=4, mask=0xff, timeout=NULL", at), .flags = "FUTEX2_SIZE_U32",
	    SOCKET),
	  &word, 4, 0xff, 2, NULL, CLOCK_MONOTONIC);
	struct {
		unsigned long val, uaddr;
		unsigned flags, reserved;
	} waiters[2] = { { 4, (unsigned long)&word, 2, 0 }, { 0, (unsigned long)&word, 2, 0 } };
	T(futex_waitv,
	  X(.args = "nr_futexes=1, timeout=NULL, clockid=CLOCK_MONOTONIC", .flags = "0", SOCKET),
	  waiters, 1, 0, NULL, CLOCK_MONOTONIC);
	waiters[0].val = 3;
	T(futex_requeue, X(.args = "nr_wake=1, nr_requeue=2", .flags = "0", SOCKET), waiters, 0, 1,
	  2);
	T(futex_requeue, X(.args = "nr_wake=-1, nr_requeue=2", .flags = "0", SOCKET), waiters, 0,
	  -1, 2);

	T(nanosleep, X(.args = "rqtp={tv_sec=0, tv_nsec=1000}", SOCKET), &brief, NULL);
	T(nanosleep, X(.args = "rqtp={tv_sec=0, tv_nsec=18446744073709551615}", SOCKET), &wrong,
	  NULL);
	T(nanosleep, X(.args = "rqtp=NULL", SOCKET), NULL, NULL);
	T(clock_nanosleep,
	  X(.flags = "0", .args = "clockid=CLOCK_MONOTONIC, rqtp={tv_sec=0, tv_nsec=1000}", SOCKET),
	  CLOCK_MONOTONIC, 0, &brief, NULL);
	T(clock_nanosleep,
	  X(.flags = "TIMER_ABSTIME",
	    .args = "clockid=CLOCK_REALTIME, rqtp={tv_sec=0, tv_nsec=18446744073709551615}",
	    SOCKET),
	  CLOCK_REALTIME, TIMER_ABSTIME, &wrong, NULL);

	struct sigaction action = { .sa_handler = nothing };
	sigaction(SIGALRM, &action, NULL);
	struct itimerspec soon = { .it_value = { 0, 20000000 } };
	timer_t timer;
	if (timer_create(CLOCK_MONOTONIC, NULL, &timer) || timer_settime(timer, 0, &soon, NULL))
		truth_die("timer");
#ifdef SYS_pause
	T(pause, X(SOCKET));
	timer_settime(timer, 0, &soon, NULL);
#endif
	/* What is left of the time goes where the time was. */
	struct timespec second = { 1, 5 };
	T(nanosleep, X(.args = "rqtp={tv_sec=1, tv_nsec=5}", SOCKET), &second, &second);

	pid_t child = fork();
	if (!child)
		_exit(3);
	T(wait4,
	  X(.args = text("pid=%d, wstatus=[{WIFEXITED(s) && WEXITSTATUS(s) == 3}], options=__WALL",
			 child),
	    SOCKET),
	  child, buffer, 0x40000000, NULL);
	T(wait4, X(.args = "pid=-1, options=WNOHANG", SOCKET), -1, buffer, WNOHANG, NULL);
	child = fork();
	if (!child)
		_exit(0);
	T(waitid, X(.args = text("which=P_PID, upid=%d, options=WEXITED", child), SOCKET), P_PID,
	  child, NULL, WEXITED, NULL);
	T(waitid, X(.args = "which=P_ALL, upid=0, options=WNOHANG|WEXITED", SOCKET), P_ALL, 0, NULL,
	  WNOHANG | WEXITED, NULL);

#ifdef SYS_eventfd
	T(eventfd, X(.args = "initval=5", SOCKET), 5);
#endif
	T(eventfd2,
	  X(.args = "initval=6", .flags = "EFD_SEMAPHORE|EFD_CLOEXEC|EFD_NONBLOCK", SOCKET), 6,
	  EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK);
	T(eventfd2, X(.args = "initval=0", .flags = "0x2 /* EFD_??? */", SOCKET), 0, 2);
	long fd =
		T(timerfd_create,
		  X(.args = "clockid=CLOCK_MONOTONIC", .flags = "TFD_CLOEXEC|TFD_NONBLOCK", SOCKET),
		  CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	T(timerfd_create, X(.args = "clockid=0x63 /* CLOCK_??? */", .flags = "0", SOCKET), 99, 0);
	struct itimerspec every = { { 1, 2 }, { 3, 4 } };
	/* The old value goes where the new one was. */
	T(timerfd_settime,
	  X(.fd = fd, .flags = "TFD_TIMER_ABSTIME", SOCKET,
	    .args = "new_value={it_interval={tv_sec=1, tv_nsec=2}, it_value={tv_sec=3, "
		    "tv_nsec=4}}"),
	  fd, TFD_TIMER_ABSTIME, &every, &every);
	T(timerfd_settime, X(.fd = BAD_FD, .flags = "0", .args = "new_value=NULL", SOCKET), BAD_FD,
	  0, NULL, NULL);
	unsigned long set = 1UL << (SIGUSR1 - 1);
	T(signalfd4, X(.fd = -1, .flags = "SFD_CLOEXEC", SOCKET), -1, &set, 8, SFD_CLOEXEC);
	T(signalfd4, X(.fd = BAD_FD, .flags = "0", SOCKET), BAD_FD, &set, 8, 0);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	dir = argv[1];
	truth_begin();
	inet_calls();
	datagram_calls();
	unix_calls();
	poll_calls();
	waiting_calls();
	truth_end();
	return 0;
}
