/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The block layer: one record a request to a device, made when it is completed.
 *
 * A file system submits bios; the block layer splits them, makes requests of them,
 * merges those, queues them and issues them to the driver. Where a bio comes from is
 * known when it is submitted, mostly in the context of the task; all else happens to
 * requests, often in a worker or an interrupt. So bios are kept by their address from
 * submission to completion, and a request finds them through its own list.
 *
 * Every request on the machine is recorded, whoever made it: a device is shared, and
 * who fills its queue is often somebody else. Those that no recorded task caused name
 * none. Devices without requests of their own (dm, md, zram) are seen through the
 * devices below them.
 */
#include "causes.bpf.h"
#include "include/pages.h"

/* include/linux/blk_types.h */
enum { REQ_OP_FLUSH = 2, REQ_OP_DRV_IN = 34, REQ_OP_DRV_OUT = 35 };

/* Bios on their way. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536); /* 1 without this layer */
	__type(key, __u64);
	__type(value, struct bio_record);
} bios SEC(".maps");

/* Requests on their way. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768); /* 1 without this layer */
	__type(key, __u64);
	__type(value, struct request_state);
} requests SEC(".maps");

/* Requests that each device has been given and has not completed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} devices SEC(".maps");

/* A request that begins at no sector. */
#define NO_SECTOR (~0ULL)

/* Where a request begins; commands of drivers do at none. */
static __always_inline __u64 sector_of(struct request *rq)
{
	__u32 op = rq->cmd_flags & REQ_OP_MASK;
	return op == REQ_OP_DRV_IN || op == REQ_OP_DRV_OUT ? NO_SECTOR : rq->__sector;
}

/* A program for what a tracepoint tells of a request or bio; before 5.11 its queue came
 * first. */
#if HAVE_OLD_BLOCK
#define QUEUE_PROGRAM(tracepoint, program, type, function)                                         \
	SEC("tp_btf/" #tracepoint)                                                                 \
	int BPF_PROG(program, type *object)                                                        \
	{                                                                                          \
		return function(object);                                                           \
	}                                                                                          \
	SEC("tp_btf/" #tracepoint)                                                                 \
	int BPF_PROG(program##_behind_queue, struct request_queue *queue, type *object)            \
	{                                                                                          \
		return function(object);                                                           \
	}
#else
#define QUEUE_PROGRAM(tracepoint, program, type, function)                                         \
	SEC("tp_btf/" #tracepoint)                                                                 \
	int BPF_PROG(program, type *object)                                                        \
	{                                                                                          \
		return function(object);                                                           \
	}
#endif

static __always_inline int bio_queued(struct bio *bio)
{
	struct task_struct *task = current_task();
	struct task_state *state = task_state_of(task);
	struct request_key by = {};
	struct bio_record record = {
		.queued_at_ns = bpf_ktime_get_ns(),
		.offset = NO_OFFSET,
		.submit_tid = READ_TYPED(task, pid),
		.submit_pid = READ_TYPED(task, tgid),
	};
	bpf_probe_read_kernel(record.comm, sizeof(record.comm), task->comm);
	present_request(task, state, &by);
	record.submit_ns = by.ns;
	if (by.ns) {
		record.submit_tid = by.tid;
		record.submit_pid = by.pid;
		record.origin = BIO_CALL;
		record.file = by.file;
		if (state)
			note_below(state);
	}
	__u32 op = bio->bi_opf & REQ_OP_MASK;
	if (bio->bi_vcnt && op <= REQ_OP_WRITE) {
		struct bio_vec first = {};
		bpf_probe_read_kernel(&first, sizeof(first), BPF_CORE_READ(bio, bi_io_vec));
		struct page_place place = place_of_page((__u64)first.bv_page, op != REQ_OP_WRITE);
		if (place.inode) {
			bool metadata = is_block_device(place.inode);
			record.file = handle_of_inode(place.inode);
			record.offset = (place.index << layer_config.page_shift) + first.bv_offset;
			if (op == REQ_OP_WRITE) {
				struct dirty_key key = {
					.inode = place.inode,
					.page = metadata ? place.index + 1 : 0,
				};
				struct request_key *dirtier = bpf_map_lookup_elem(&dirtiers, &key);
				record.origin = BIO_WRITEBACK;
				if (dirtier)
					by = *dirtier;
			} else if (bio->bi_opf &
				   1U << bpf_core_enum_value(enum req_flag_bits, __REQ_RAHEAD)) {
				record.origin = BIO_READAHEAD;
			} else {
				record.origin = BIO_CACHE_READ;
			}
		}
	}
	if (record.origin != BIO_WRITEBACK && READ_TYPED(task, flags) & PF_KTHREAD) {
		__u32 tid = READ_TYPED(task, pid);
		struct request_key *commit = bpf_map_lookup_elem(&committing, &tid);
		if (commit) {
			record.origin = BIO_JOURNAL;
			by = *commit;
		}
	}
	record.cause_ns = by.ns;
	if (by.ns) {
		record.cause_tid = by.tid;
		record.cause_pid = by.pid;
	}
	__u64 key = *(volatile __u64 *)&bio;
	bpf_map_update_elem(&bios, &key, &record, BPF_ANY);
	return 0;
}
QUEUE_PROGRAM(block_bio_queue, layer_bio_queue, struct bio, bio_queued)

/* The beginning of a bio becomes one of its own, chained to the rest. */
static __always_inline int bio_split(struct bio *bio)
{
	__u64 front = *(volatile __u64 *)&bio;
	__u64 rest = (__u64)bio->bi_private;
	struct bio_record *whole = bpf_map_lookup_elem(&bios, &rest);
	if (!whole)
		return 0;
	bpf_map_update_elem(&bios, &front, whole, BPF_ANY);
	if (whole->offset != NO_OFFSET)
		whole->offset += bio->bi_iter.bi_size;
	return 0;
}
QUEUE_PROGRAM(block_split, layer_split, struct bio, bio_split)

static __always_inline struct gendisk *disk_of(struct request *rq)
{
	if (bpf_core_field_exists(struct request___disk, rq_disk))
		return BPF_CORE_READ((struct request___disk *)rq, rq_disk);
	return BPF_CORE_READ(rq, q, disk);
}

static __always_inline __u32 disk_device(struct gendisk *disk)
{
	return disk ? BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor) : 0;
}

/* Requests that the device has, after `change`. */
static __always_inline __u64 device_depth(__u32 dev, __s64 change)
{
	__u64 none = 0;
	__u64 *depth = bpf_map_lookup_elem(&devices, &dev);
	if (!depth) {
		bpf_map_update_elem(&devices, &dev, &none, BPF_NOEXIST);
		depth = bpf_map_lookup_elem(&devices, &dev);
	}
	if (!depth)
		return 0;
#if HAVE_FETCHING_ATOMICS
	return __sync_fetch_and_add(depth, change) + change;
#else
	__sync_fetch_and_add(depth, change);
	return *(volatile __u64 *)depth;
#endif
}

static __always_inline __u32 request_flags(__u32 flags)
{
	__u32 known = 0;
#define KNOWN_FLAG(theirs, ours)                                                                   \
	if (bpf_core_enum_value_exists(enum req_flag_bits, theirs) &&                              \
	    flags >> bpf_core_enum_value(enum req_flag_bits, theirs) & 1)                          \
		known |= ours;
	KNOWN_FLAG(__REQ_SYNC, BLOCK_SYNC)
	KNOWN_FLAG(__REQ_META, BLOCK_META)
	KNOWN_FLAG(__REQ_PRIO, BLOCK_PRIO)
	KNOWN_FLAG(__REQ_FUA, BLOCK_FUA)
	KNOWN_FLAG(__REQ_PREFLUSH, BLOCK_PREFLUSH)
	KNOWN_FLAG(__REQ_RAHEAD, BLOCK_RAHEAD)
	KNOWN_FLAG(__REQ_BACKGROUND, BLOCK_BACKGROUND)
	KNOWN_FLAG(__REQ_NOWAIT, BLOCK_NOWAIT)
	KNOWN_FLAG(__REQ_IDLE, BLOCK_IDLE)
#undef KNOWN_FLAG
	return known;
}

/* Notes what would be asked of a request if it were never seen to complete. */
static __always_inline void note_request(struct request *rq, struct request_state *state)
{
	state->op = rq->cmd_flags & REQ_OP_MASK;
	state->flags = request_flags(rq->cmd_flags);
	state->bytes = state->done + rq->__data_len;
	if (!state->requeues)
		state->sector = sector_of(rq);
	/* What several bios are of a request is only known from their list. */
	__u64 bio = (__u64)READ_LINK(request, rq, bio);
	state->bio_at = bio == (__u64)READ_LINK(request, rq, biotail) ? bio : 0;
	state->bio.queued_at_ns = 0;
}

/* Notes the only bio of a request, whose address another one may have by the time when the
 * request is not seen to have completed. */
static __always_inline void note_bio(struct request_state *state)
{
	__u64 key = state->bio_at;
	struct bio_record *bio = key ? bpf_map_lookup_elem(&bios, &key) : NULL;
	if (bio)
		state->bio = *bio;
}

/* Sends the record of a request that ended without being seen: the kernel leaves programs
 * out that interrupt themselves on a CPU, and some kernels in the course of some tasks.
 * Such a request is found when another one has its address. */
static __always_inline void request_unseen(struct request_state *state)
{
	/* Else it was merged into another one, which cannot happen to these. */
	if (!state->in_device && !(state->flags & (BLOCK_PREFLUSH | BLOCK_FUA)))
		return;
	__u64 now = bpf_ktime_get_ns();
	if (state->in_device)
		device_depth(state->dev, -1);
	struct scratch *scratch = scratch_get();
	if (!scratch) {
		COUNT(blocks_lost);
		layer_lost(LOST_BLOCK, now, 0, 0, state->bytes);
		return;
	}
	struct {
		struct block_record block;
		struct bio_record bio;
	} *record = (void *)scratch->data;
	__builtin_memset(record, 0, sizeof(*record));
	record->block.kind = RECORD_BLOCK;
	record->block.dev = state->dev;
	record->block.started_at_ns = state->started_at_ns;
	record->block.inserted_at_ns = state->inserted_at_ns;
	record->block.issued_at_ns = state->issued_at_ns;
	record->block.completed_at_ns = now;
	record->block.sector = state->sector;
	record->block.bytes = state->bytes;
	record->block.op = state->op;
	record->block.flags = state->flags | BLOCK_UNSEEN;
	record->block.queue_depth = state->depth;
	record->block.requeues = state->requeues;
	__builtin_memcpy(record->block.disk, state->disk, sizeof(state->disk));
	__u64 size = sizeof(record->block);
	if (state->bio.queued_at_ns) {
		record->bio = state->bio;
		record->bio.sector = state->sector;
		record->bio.bytes = state->bytes;
		record->block.bios = 1;
		size = sizeof(*record);
		__u64 key = state->bio_at;
		struct bio_record *bio = bpf_map_lookup_elem(&bios, &key);
		if (bio && bio->queued_at_ns == state->bio.queued_at_ns)
			bpf_map_delete_elem(&bios, &key);
	}
	if (wide_output(record, size)) {
		COUNT(blocks);
	} else {
		COUNT(blocks_lost);
		layer_lost(LOST_BLOCK, now, 0, 0, state->bytes);
	}
	scratch_put(scratch);
}

/* Whether the state is that of this request, not of one that had its address before. As a
 * request starts, newer kernels have not noted yet when it did. */
static __always_inline bool is_of(struct request_state *state, struct request *rq)
{
	if (!state->began_ns)
		state->began_ns = rq->start_time_ns;
	return state->began_ns == rq->start_time_ns;
}

/* A new state at the address of a request. */
static __always_inline struct request_state *fresh_state(struct request *rq)
{
	static const struct request_state none;
	__u64 key = *(volatile __u64 *)&rq;
	bpf_map_update_elem(&requests, &key, &none, BPF_ANY);
	struct request_state *state = bpf_map_lookup_elem(&requests, &key);
	if (!state)
		return NULL;
	struct gendisk *disk = disk_of(rq);
	state->dev = disk_device(disk);
	if (disk)
		bpf_core_read(state->disk, sizeof(state->disk), &disk->disk_name);
	note_request(rq, state);
	return state;
}

/* The state of a request, made when there is none. */
static __always_inline struct request_state *request_state(struct request *rq)
{
	__u64 key = *(volatile __u64 *)&rq;
	struct request_state *state = bpf_map_lookup_elem(&requests, &key);
	if (state && is_of(state, rq))
		return state;
	if (state)
		request_unseen(state);
	state = fresh_state(rq);
	if (state)
		state->began_ns = rq->start_time_ns;
	return state;
}

SEC("tp_btf/block_io_start")
int BPF_PROG(layer_rq_start, struct request *rq)
{
	__u64 key = *(volatile __u64 *)&rq;
	struct request_state *state = bpf_map_lookup_elem(&requests, &key);
	if (state)
		request_unseen(state);
	state = fresh_state(rq);
	if (state)
		state->started_at_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline int request_inserted(struct request *rq)
{
	struct request_state *state = request_state(rq);
	if (state && !state->inserted_at_ns)
		state->inserted_at_ns = bpf_ktime_get_ns();
	return 0;
}
QUEUE_PROGRAM(block_rq_insert, layer_rq_insert, struct request, request_inserted)

static __always_inline int request_issued(struct request *rq)
{
	struct request_state *state = request_state(rq);
	if (!state)
		return 0;
	if (!state->issued_at_ns)
		state->issued_at_ns = bpf_ktime_get_ns();
	/* Drivers that are given several at once may start one twice (virtblk_queue_rqs). */
	if (!state->in_device) {
		/* It may have grown since. */
		note_request(rq, state);
		note_bio(state);
		state->depth = device_depth(state->dev, 1);
		state->in_device = 1;
	}
	return 0;
}
QUEUE_PROGRAM(block_rq_issue, layer_rq_issue, struct request, request_issued)

static __always_inline int request_requeued(struct request *rq)
{
	__u64 key = *(volatile __u64 *)&rq;
	struct request_state *state = bpf_map_lookup_elem(&requests, &key);
	if (!state || !state->in_device || !is_of(state, rq))
		return 0;
	state->in_device = 0;
	state->requeues++;
	device_depth(state->dev, -1);
	return 0;
}
QUEUE_PROGRAM(block_rq_requeue, layer_rq_requeue, struct request, request_requeued)

/* Its bios go to the request before it. */
static __always_inline int request_merged(struct request *rq)
{
	__u64 key = *(volatile __u64 *)&rq;
	struct request_state *state = bpf_map_lookup_elem(&requests, &key);
	if (state && !is_of(state, rq))
		request_unseen(state);
	bpf_map_delete_elem(&requests, &key);
	return 0;
}
QUEUE_PROGRAM(block_rq_merge, layer_rq_merge, struct request, request_merged)

/* The next bio of a request, which is ending. */
SCRATCH_STEP(take_bio)
{
	struct bio_walk *walk = &scratch->bios;
	struct bio *bio = (struct bio *)walk->bio;
	__u64 key = walk->bio;
	if (!key)
		return 1;
	walk->bio = (__u64)BPF_CORE_READ(bio, bi_next);
	__u32 count = walk->count;
	if (count >= MAX_BIOS) {
		walk->left_out++;
		bpf_map_delete_elem(&bios, &key);
		return 0;
	}
	struct bio_record *out =
		(void *)scratch->data + sizeof(struct block_record) + count * sizeof(*out);
	struct bio_record *known = bpf_map_lookup_elem(&bios, &key);
	if (known) {
		*out = *known;
		bpf_map_delete_elem(&bios, &key);
	} else {
		__builtin_memset(out, 0, sizeof(*out));
		out->offset = NO_OFFSET;
	}
	out->sector = BPF_CORE_READ(bio, bi_iter.bi_sector);
	out->bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	walk->count = count + 1;
	return 0;
}

/* How a request ended, as a blk_status_t. Older kernels tell the tracepoint an errno instead,
 * which is negative; each of those stands for one status (blk_errors in block/blk-core.c). */
static __always_inline __u8 status_of(int error)
{
	if (error >= 0)
		return error;
	switch (-error) {
	case 95: /* EOPNOTSUPP */
		return 1; /* BLK_STS_NOTSUPP */
	case 110: /* ETIMEDOUT */
		return 2; /* BLK_STS_TIMEOUT */
	case 28: /* ENOSPC */
		return 3; /* BLK_STS_NOSPC */
	case 67: /* ENOLINK */
		return 4; /* BLK_STS_TRANSPORT */
	case 121: /* EREMOTEIO */
		return 5; /* BLK_STS_TARGET */
	case 52: /* EBADE */
		return 6; /* BLK_STS_NEXUS */
	case 61: /* ENODATA */
		return 7; /* BLK_STS_MEDIUM */
	case 84: /* EILSEQ */
		return 8; /* BLK_STS_PROTECTION */
	case 12: /* ENOMEM */
		return 9; /* BLK_STS_RESOURCE */
	case 78: /* EREMCHG */
		return 11; /* BLK_STS_DM_REQUEUE */
	case 11: /* EAGAIN */
		return 12; /* BLK_STS_AGAIN */
	case 16: /* EBUSY */
		return 13; /* BLK_STS_DEV_RESOURCE */
	case 109: /* ETOOMANYREFS */
		return 15; /* BLK_STS_ZONE_OPEN_RESOURCE */
	case 75: /* EOVERFLOW */
		return 16; /* BLK_STS_ZONE_ACTIVE_RESOURCE */
	default:
		return 10; /* BLK_STS_IOERR */
	}
}

/* Completions so far, counted for layer_config.miss_completions only. */
__u64 completions;

SEC("tp_btf/block_rq_complete")
int BPF_PROG(layer_rq_complete, struct request *rq, int error, unsigned int bytes)
{
	if (layer_config.miss_completions &&
	    (__u32)++completions % layer_config.miss_completions == 0)
		return 0;
	__u64 key = *(volatile __u64 *)&rq;
	__u32 op = rq->cmd_flags & REQ_OP_MASK;
	struct request_state *state = bpf_map_lookup_elem(&requests, &key);
	if (state && !is_of(state, rq)) {
		request_unseen(state);
		bpf_map_delete_elem(&requests, &key);
		state = NULL;
	}
	if (state)
		state->done += bytes;
	/* More is to come of it. */
	if (bytes < rq->__data_len)
		return 0;
	/* Its data are there, but a flush is still to follow. */
	if (op != REQ_OP_FLUSH && rq->rq_flags >> layer_config.flush_sequence_bit & 1)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	__u64 moved = bytes;
	if (state) {
		moved = state->done;
		/* Not all of its completions may have been seen. */
		if (!error && moved < state->bytes)
			moved = state->bytes;
		if (state->in_device)
			device_depth(state->dev, -1);
	}
	struct scratch *scratch = scratch_get();
	if (!scratch) {
		layer_lost(LOST_BLOCK, now, 0, 0, moved);
		COUNT(blocks_lost);
		goto forget;
	}
	struct bio_walk *walk = &scratch->bios;
	walk->bio = (__u64)READ_LINK(request, rq, bio);
	walk->count = walk->left_out = 0;
	SCRATCH_LOOP(HAVE_LOOPS ? 1 << 16 : 3 * LOOP_BATCH, take_bio, scratch);
	struct block_record *record = (void *)scratch->data;
	__builtin_memset(record, 0, sizeof(*record));
	struct gendisk *disk = disk_of(rq);
	record->kind = RECORD_BLOCK;
	record->error = status_of(error);
	record->dev = disk_device(disk);
	record->completed_at_ns = now;
	record->sector = sector_of(rq);
	record->bytes = moved;
	record->op = op;
	record->flags = request_flags(rq->cmd_flags);
	record->bios_left_out = walk->left_out;
	if (state) {
		record->started_at_ns = state->started_at_ns;
		record->inserted_at_ns = state->inserted_at_ns;
		record->issued_at_ns = state->issued_at_ns;
		record->queue_depth = state->depth;
		record->requeues = state->requeues;
		if (state->issued_at_ns)
			record->sector = state->sector;
	}
	if (disk)
		bpf_core_read(record->disk, sizeof(record->disk), &disk->disk_name);
	__u32 count = walk->count;
	if (count > MAX_BIOS)
		count = MAX_BIOS;
	record->bios = count;
	if (wide_output(scratch->data, sizeof(*record) + count * sizeof(struct bio_record))) {
		COUNT(blocks);
	} else {
		COUNT(blocks_lost);
		layer_lost(LOST_BLOCK, now, 0, 0, moved);
	}
	scratch_put(scratch);
forget:
	bpf_map_delete_elem(&requests, &key);
	return 0;
}
