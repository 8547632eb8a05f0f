/*
 * An io_uring without a library, for the workloads.
 */
#ifndef URING_H
#define URING_H

#include "truth.h"

#include <sys/mman.h>

/* include/uapi/linux/io_uring.h, of a kernel newer than the headers here. */
struct entry {
	unsigned char opcode, flags;
	unsigned short ioprio;
	int fd;
	unsigned long long off, addr;
	unsigned len, op_flags;
	unsigned long long user_data;
	unsigned short buf_index, personality;
	unsigned fd_in;
	unsigned long long addr3, pad;
};
struct completion {
	unsigned long long user_data;
	int res;
	unsigned flags;
};
struct ring_params {
	unsigned sq_entries, cq_entries, flags, sq_thread_cpu, sq_thread_idle, features, wq_fd;
	unsigned reserved[3];
	struct {
		unsigned head, tail, mask, entries, flags, dropped, array, reserved;
		unsigned long long user_addr;
	} sq;
	struct {
		unsigned head, tail, mask, entries, overflow, cqes, flags, reserved;
		unsigned long long user_addr;
	} cq;
};

enum {
	SETUP_SQPOLL = 1 << 1,
	SETUP_CQSIZE = 1 << 3,
	SETUP_SQE128 = 1 << 10,
	SETUP_NO_SQARRAY = 1 << 16,
	FIXED_FILE = 1,
	DRAIN = 2,
	LINK = 4,
	HARDLINK = 8,
	ASYNC = 16,
	BUFFER_SELECT = 32,
	CQE_SKIP = 64,
	F_MORE = 2,
	ENTER_GETEVENTS = 1,
	ENTER_SQ_WAKEUP = 2,
	SQ_NEED_WAKEUP = 1,
};

struct ring {
	int fd;
	unsigned setup;
	unsigned *sq_tail, *sq_mask, *sq_array, *sq_flags, *cq_head, *cq_tail, *cq_mask;
	struct completion *cqes;
	char *entries;
	unsigned queued;
};

/* Maps the rings; `params` as io_uring_setup has filled it in. */
static void ring_map(struct ring *ring, int fd, struct ring_params *params)
{
	size_t bytes = params->sq.array + params->sq_entries * sizeof(unsigned);
	size_t cq_bytes = params->cq.cqes + params->cq_entries * sizeof(struct completion);
	size_t entry = params->flags & SETUP_SQE128 ? 128 : 64;
	if (bytes < cq_bytes)
		bytes = cq_bytes;
	int flags = MAP_SHARED | MAP_POPULATE, access = PROT_READ | PROT_WRITE;
	char *rings = mmap(NULL, bytes, access, flags, fd, 0);
	ring->entries = mmap(NULL, params->sq_entries * entry, access, flags, fd, 0x10000000);
	if (rings == MAP_FAILED || ring->entries == MAP_FAILED)
		truth_die("mapping the ring");
	ring->fd = fd;
	ring->setup = params->flags;
	ring->queued = 0;
	ring->sq_tail = (unsigned *)(rings + params->sq.tail);
	ring->sq_mask = (unsigned *)(rings + params->sq.mask);
	ring->sq_flags = (unsigned *)(rings + params->sq.flags);
	ring->sq_array = (unsigned *)(rings + params->sq.array);
	ring->cq_head = (unsigned *)(rings + params->cq.head);
	ring->cq_tail = (unsigned *)(rings + params->cq.tail);
	ring->cq_mask = (unsigned *)(rings + params->cq.mask);
	ring->cqes = (struct completion *)(rings + params->cq.cqes);
}

/* Makes a ring; not logged. */
__attribute__((unused)) static void ring_make(struct ring *ring, unsigned entries, unsigned flags)
{
	struct ring_params params = { .flags = flags, .sq_thread_idle = 2000 };
	int fd = (int)syscall(SYS_io_uring_setup, entries, &params);
	if (fd < 0)
		truth_die("io_uring_setup");
	ring_map(ring, fd, &params);
}

/* Puts an entry into the queue. The array is filled from its end, so that the
 * index of an entry is not its place. */
static void ring_put(struct ring *ring, struct entry entry)
{
	unsigned tail = *ring->sq_tail, place = tail & *ring->sq_mask;
	size_t size = ring->setup & SETUP_SQE128 ? 128 : 64;
	unsigned index = place;
	if (!(ring->setup & SETUP_NO_SQARRAY)) {
		index = *ring->sq_mask - place;
		ring->sq_array[place] = index;
	}
	memset(ring->entries + index * size, 0, size);
	memcpy(ring->entries + index * size, &entry, sizeof entry);
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
	ring->queued++;
}

/* Takes a completion if there is one. */
static int ring_take(struct ring *ring, struct completion *completion)
{
	unsigned head = *ring->cq_head;
	if (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
		return 0;
	*completion = ring->cqes[head & *ring->cq_mask];
	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	return 1;
}

/* Hands over what is queued and waits for as many completions; not logged. */
__attribute__((unused)) static void ring_enter(struct ring *ring, unsigned wait)
{
	long n = syscall(SYS_io_uring_enter, ring->fd, ring->queued, wait, ENTER_GETEVENTS, NULL,
			 0L);
	if (n != (long)ring->queued)
		truth_die("io_uring_enter");
	ring->queued = 0;
}

#endif
