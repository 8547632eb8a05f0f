/* Calls of a library that do not return as others do, as C++: by exceptions, longjmp() and the end of
 * their thread; on other stacks, in handlers of signals, in children and in programs that these
 * execute. Each system call that counts names what it was made in. Says at the end what it did. With
 * BY_PRELOAD also what uprobes do not let pass: exceptions, and calls on other stacks. */
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { TURNS = 5, LEAPS = 3, THROWN = 4, THREADS = 40, SWITCHES = 6, SIGNALS = 7, CHILDREN = 2 };

typedef long (*visit)(long number, void *context);
extern "C" long walk(visit visit, void *context, long count);
extern "C" long walk_far(visit visit, void *context, long count, long a, long b, long c, long d,
			 long e, double f, long g);

static const char *directory;
static jmp_buf back;
static ucontext_t here, other;
static long visits, destroyed, caught, leaps, resumed, handled;

struct counted {
	~counted()
	{
		__atomic_fetch_add(&destroyed, 1, __ATOMIC_RELAXED);
	}
};

/* The file is not there. */
static void touch(const char *name)
{
	std::string path = std::string(directory) + "/" + name;
	if (access(path.c_str(), F_OK) == 0)
		abort();
}

static long plain(long number, void *name)
{
	__atomic_fetch_add(&visits, 1, __ATOMIC_RELAXED);
	touch((const char *)name);
	return number;
}

static long again(long, void *name)
{
	return walk(plain, name, 1);
}

static long far_away(const char *name)
{
	return walk_far(plain, (void *)name, 2, 1, 2, 3, 4, 5, 1.5, 6);
}

static long thrower(long number, void *)
{
	counted here;
	if (number == 1)
		throw std::runtime_error("thrown");
	return 0;
}

static long leaper(long number, void *)
{
	if (number == 1)
		longjmp(back, 1);
	return 0;
}

static long ends_thread(long, void *)
{
	pthread_exit(nullptr);
}

static void *thread(void *number)
{
	counted here;
	walk(plain, (void *)"thread", 1);
	if ((long)number % 2)
		walk(ends_thread, nullptr, 1);
	return nullptr;
}

static long switches(long, void *)
{
	resumed++;
	swapcontext(&other, &here);
	return 1;
}

static void on_other_stack()
{
	walk_far(switches, nullptr, 1, 0, 0, 0, 0, 0, 0, 0);
	walk(switches, nullptr, 1);
}

static void throw_and_catch()
{
	for (int i = 0; i < THROWN; i++) {
		counted here;
		try {
			counted inside;
			if (i % 2)
				walk(thrower, nullptr, 3);
			else
				walk_far(thrower, nullptr, 3, 0, 0, 0, 0, 0, 0, 0);
		} catch (const std::exception &) {
			caught++;
		}
	}
}

static void use_other_stacks()
{
	static char stack[65536];
	for (int i = 0; i < SWITCHES; i++) {
		getcontext(&other);
		other.uc_stack.ss_sp = stack;
		other.uc_stack.ss_size = sizeof(stack);
		other.uc_link = &here;
		makecontext(&other, on_other_stack, 0);
		for (int part = 0; part < 3; part++) {
			swapcontext(&here, &other);
			walk(plain, (void *)"between", 1);
		}
	}
}

static void handler(int)
{
	handled += walk(plain, (void *)"handler", 2);
}

static long raises(long, void *)
{
	return raise(SIGUSR1);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	directory = argv[1];
	if (argc > 2)
		return walk(plain, (void *)"executed", 3) == 3 ? 0 : 1;
	for (int i = 0; i < TURNS; i++) {
		if (far_away("far") != 1 + 1 + 4 + 9 + 16 + 25 + 9 + 42)
			return 3;
		walk(again, (void *)"again", 2);
	}
	for (volatile int i = 0; i < LEAPS; i++) {
		if (setjmp(back))
			leaps++;
		else
			walk(leaper, nullptr, 3);
	}
	touch("outside");
	pthread_t threads[THREADS];
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], nullptr, thread, (void *)i))
			return 4;
	for (pthread_t one : threads)
		pthread_join(one, nullptr);
	signal(SIGUSR1, handler);
	for (int i = 0; i < SIGNALS; i++)
		walk(raises, nullptr, 1);
	if (getenv("BY_PRELOAD")) {
		throw_and_catch();
		touch("outside");
		use_other_stacks();
	}
	fflush(stdout);
	for (int i = 0; i < CHILDREN; i++) {
		if (!fork()) {
			walk(plain, (void *)"child", 1);
			execl(argv[0], argv[0], argv[1], "executed", (char *)nullptr);
			_exit(5);
		}
		int status;
		if (wait(&status) < 0 || status)
			return 6;
	}
	printf("%ld visits, %ld destroyed, %ld caught, %ld leaps, %ld resumed, %ld handled\n",
	       visits, destroyed, caught, leaps, resumed, handled);
	return 0;
}
