/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Finds the functions that calls would have reached without this object.
 *
 * The dynamic linker looks for a name in the program and the libraries that it was started with
 * first: what is defined there serves all callers. What only a library has that was loaded later is
 * found for each caller, in the library that this one needs, and forgotten when a library is closed.
 */
#define _GNU_SOURCE
#include "object.h"

#include <asm/unistd.h>

#include <elf.h>
#include <link.h>

extern int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *)
	__attribute__((weak));
extern unsigned long getauxval(unsigned long) __attribute__((weak));

enum {
	/* Libraries with a function of the same name. */
	CANDIDATES = 8,
	/* Callers that are remembered of each function. */
	CALLERS = 4,
	VERSION_HIDDEN = 0x8000,
	FILENO_AT = 112,
	FILENO_AT_IN_MUSL = 120,
};

HIDDEN void *memset(void *to, int value, size_t bytes)
{
	void *at = to;
	__asm__ volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(value) : "memory");
	return to;
}

struct image {
	__u64 base, low, high;
	const Elf64_Sym *symbols;
	const char *strings;
	const __u32 *hash, *gnu;
	const __u16 *versions;
	const Elf64_Dyn *dynamic;
};

/* Targets in what the program was started with. */
static struct target targets[MAX_STUBS + OTHERS];
static struct {
	__u32 gnu, sysv;
} hashes[MAX_STUBS + OTHERS];
static struct region_definition definitions[MAX_DEFINITIONS];
static __u64 definition_count;
HIDDEN struct known_definition known_definitions[MAX_DEFINITIONS];
static struct {
	__u64 low, high, generation;
	struct target target;
} callers[MAX_STUBS + OTHERS][CALLERS];
/* Grows when a library may have gone. */
static __u64 generation = 1;
/* The thread that looks at definitions or callers. */
static __u64 looking;

HIDDEN int take_lock(__u64 *holder)
{
	/* About a second, if nothing else runs. A sandbox may forbid to sleep. */
	enum { TRIES = 1 << 20 };
	/* A thread has waited for so long: its holder may be gone, so others try once. */
	enum { HELD = 1, GIVEN_UP = 2 };
	__u64 thread, held = 0;
	__asm__("mov %%fs:0, %0" : "=r"(thread));
	thread |= HELD;
	for (__u32 tries = TRIES; tries; tries--) {
		held = 0;
		if (__atomic_compare_exchange_n(holder, &held, thread, 0, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return 1;
		if (held & GIVEN_UP || held == thread)
			return 0;
		kernel(__NR_sched_yield, 0, 0, 0);
	}
	/* The holder takes the mark away when it lets go. */
	__atomic_compare_exchange_n(holder, &held, held | GIVEN_UP, 0, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	return 0;
}

/* The process is a copy: a thread that was looking is not in it. */
HIDDEN void forget_holder(void)
{
	let_go(&looking);
}

static const char *name_of(__u32 stub)
{
	static const char others[OTHERS][16] = { "dlclose", "longjmp", "_longjmp", "siglongjmp",
						 "__longjmp_chk" };
	return stub < MAX_STUBS ? (const char *)fathom_functions[stub].name
				: others[stub - MAX_STUBS];
}

static int image_of(const struct dl_phdr_info *info, struct image *image)
{
	*image = (struct image){ .base = info->dlpi_addr, .low = ~0ul };
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *part = &info->dlpi_phdr[i];
		__u64 at = info->dlpi_addr + part->p_vaddr;
		if (part->p_type == PT_DYNAMIC)
			image->dynamic = (const Elf64_Dyn *)at;
		if (part->p_type != PT_LOAD)
			continue;
		if (at < image->low)
			image->low = at;
		if (at + part->p_memsz > image->high)
			image->high = at + part->p_memsz;
	}
	if (!image->dynamic)
		return 0;
	for (const Elf64_Dyn *entry = image->dynamic; entry->d_tag != DT_NULL; entry++) {
		/* Some dynamic linkers put addresses in the place of offsets. */
		__u64 value = entry->d_un.d_ptr;
		if (value < image->low)
			value += image->base;
		switch (entry->d_tag) {
		case DT_SYMTAB:
			image->symbols = (const Elf64_Sym *)value;
			break;
		case DT_STRTAB:
			image->strings = (const char *)value;
			break;
		case DT_HASH:
			image->hash = (const __u32 *)value;
			break;
		case DT_GNU_HASH:
			image->gnu = (const __u32 *)value;
			break;
		case DT_VERSYM:
			image->versions = (const __u16 *)value;
			break;
		}
	}
	return image->symbols && image->strings && (image->hash || image->gnu);
}

static __u32 gnu_hash(const char *name)
{
	__u32 hash = 5381;
	for (; *name; name++)
		hash = hash * 33 + (__u8)*name;
	return hash;
}

static __u32 sysv_hash(const char *name)
{
	__u32 hash = 0;
	for (; *name; name++) {
		hash = (hash << 4) + (__u8)*name;
		__u32 high = hash & 0xf0000000;
		hash = (hash ^ high >> 24) & ~high;
	}
	return hash;
}

/* Whether a symbol is a definition of `name`: 2 of its default version, 1 of another one. */
static int is_definition(const struct image *image, __u32 number, const char *name)
{
	const Elf64_Sym *symbol = &image->symbols[number];
	__u8 type = symbol->st_info & 15;
	if (symbol->st_shndx == SHN_UNDEF ||
	    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
		return 0;
	if (!same(image->strings + symbol->st_name, name))
		return 0;
	return image->versions && image->versions[number] & VERSION_HIDDEN ? 1 : 2;
}

static const Elf64_Sym *symbol_of(const struct image *image, const char *name, __u32 gnu,
				  __u32 sysv)
{
	const Elf64_Sym *other = 0;
	if (image->gnu) {
		__u32 buckets = image->gnu[0], first = image->gnu[1], words = image->gnu[2];
		const __u64 *bloom = (const __u64 *)(image->gnu + 4);
		const __u32 *bucket = (const __u32 *)(bloom + words), *chain = bucket + buckets;
		__u64 word = bloom[(gnu / 64) & (words - 1)];
		if (!buckets || !(word >> (gnu & 63) & word >> ((gnu >> image->gnu[3]) & 63) & 1))
			return 0;
		__u32 number = bucket[gnu % buckets];
		if (number < first)
			return 0;
		for (;; number++) {
			__u32 hash = chain[number - first];
			int kind = (hash | 1) == (gnu | 1) ? is_definition(image, number, name) : 0;
			if (kind == 2)
				return &image->symbols[number];
			if (kind)
				other = &image->symbols[number];
			if (hash & 1)
				return other;
		}
	}
	const __u32 *bucket = image->hash + 2, *chain = bucket + image->hash[0];
	for (__u32 number = bucket[sysv % image->hash[0]]; number; number = chain[number]) {
		int kind = is_definition(image, number, name);
		if (kind == 2)
			return &image->symbols[number];
		if (kind)
			other = &image->symbols[number];
	}
	return other;
}

static void *address_of(const struct image *image, const Elf64_Sym *symbol)
{
	void *address = (void *)(image->base + symbol->st_value);
	return (symbol->st_info & 15) == STT_GNU_IFUNC ? ((void *(*)(void))address)() : address;
}

static const char *file_name(const char *path)
{
	const char *name = path;
	for (; *path; path++)
		if (*path == '/')
			name = path + 1;
	return name;
}

/* Whether the file of this name may be the library: crates/probe/src/wanted_functions.rs. */
static int is_library(const char *file, const char *library)
{
	if (same(library, "libc") && file[0] == 'l' && file[1] == 'd' && file[2] == '-' &&
	    file[3] == 'm')
		return 1;
	while (*library && *library == *file) {
		library++;
		file++;
	}
	if (*library)
		return 0;
	return !*file || *file == '.' || *file == '-' || *file == '_' ||
	       (*file >= '0' && *file <= '9');
}

static int is_wanted(__u32 stub, const char *path)
{
	if (stub >= MAX_STUBS || !*path)
		return 0;
	const char *library = (const char *)fathom_functions[stub].libraries;
	for (; *library; library += length(library) + 1)
		if (is_library(file_name(path), library))
			return 1;
	return 0;
}

static int contains(const char *text, const char *part)
{
	__u64 n = length(part);
	for (; *text; text++) {
		__u64 i = 0;
		while (i < n && text[i] == part[i])
			i++;
		if (i == n)
			return 1;
	}
	return 0;
}

HIDDEN void publish_definitions(void)
{
	if (!region)
		return;
	struct region_process *process = (void *)region;
	__u64 count = LOAD(&definition_count), done = process->definitions;
	struct region_definition *to = (void *)(region + DEFINITIONS_AT);
	copy(to + done, definitions + done, (count - done) * sizeof(*to));
	STORE(&process->definitions, count);
}

/* The number of a function in a library. Nobody else looks meanwhile. */
static __u32 define(__u32 stub, const char *path)
{
	if (!is_wanted(stub, path))
		return NOT_RECORDED;
	__u64 bytes = length(path);
	if (bytes > sizeof(definitions->path) - 1)
		bytes = sizeof(definitions->path) - 1;
	for (__u32 i = 0; i < definition_count; i++) {
		__u64 at = 0;
		if (definitions[i].stub != stub || definitions[i].path_len != bytes)
			continue;
		while (at < bytes && definitions[i].path[at] == (__u8)path[at])
			at++;
		if (at == bytes)
			return i;
	}
	if (definition_count == MAX_DEFINITIONS)
		return UNSEEN;
	struct region_definition *new = &definitions[definition_count];
	new->stub = stub;
	new->path_len = bytes;
	copy(new->path, path, bytes);
	known_definitions[definition_count].function = &fathom_functions[stub];
	known_definitions[definition_count].fileno_at =
		contains(path, "musl") ? FILENO_AT_IN_MUSL : FILENO_AT;
	STORE(&definition_count, definition_count + 1);
	publish_definitions();
	return definition_count - 1;
}

static struct target target_of(__u32 stub, const char *path, void *real)
{
	return (struct target){ .real = real, .definition = define(stub, path) };
}

static int is_own(const struct image *image)
{
	__u64 here = (__u64)fathom_return;
	return here >= image->low && here < image->high;
}

static int look_at_first(struct dl_phdr_info *info, size_t size, void *data)
{
	struct image image;
	if (!image_of(info, &image) || is_own(&image))
		return 0;
	for (__u32 stub = 0; stub < MAX_STUBS + OTHERS; stub++) {
		if ((stub >= fathom_function_count && stub < MAX_STUBS) || targets[stub].real)
			continue;
		const Elf64_Sym *symbol =
			symbol_of(&image, name_of(stub), hashes[stub].gnu, hashes[stub].sysv);
		if (!symbol)
			continue;
		void *real = address_of(&image, symbol);
		__u32 first = 0;
		while (first < stub && targets[first].real != real)
			first++;
		/* Several names of one function are one. */
		targets[stub] =
			first < stub ? targets[first] : target_of(stub, info->dlpi_name, real);
	}
	return 0;
}

HIDDEN void find_all(void)
{
	for (__u32 stub = 0; stub < MAX_STUBS + OTHERS; stub++) {
		hashes[stub].gnu = gnu_hash(name_of(stub));
		hashes[stub].sysv = sysv_hash(name_of(stub));
	}
	if (dl_iterate_phdr)
		dl_iterate_phdr(look_at_first, 0);
}

struct search {
	__u32 stub, found;
	__u64 caller;
	struct image of_caller;
	struct {
		void *real;
		const char *path;
		__u64 base;
	} candidates[CANDIDATES];
};

static int look_for(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	struct image image;
	if (!image_of(info, &image) || is_own(&image))
		return 0;
	if (search->caller >= image.low && search->caller < image.high)
		search->of_caller = image;
	const Elf64_Sym *symbol = symbol_of(&image, name_of(search->stub), hashes[search->stub].gnu,
					    hashes[search->stub].sysv);
	if (symbol && search->found < CANDIDATES) {
		__u32 at = search->found++;
		search->candidates[at].real = address_of(&image, symbol);
		search->candidates[at].path = info->dlpi_name;
		search->candidates[at].base = image.base;
	}
	return 0;
}

/* Of several libraries with the function, that of the caller: itself, or one that it needs. */
static __u32 chosen(const struct search *search)
{
	const struct image *image = &search->of_caller;
	for (__u32 i = 0; image->dynamic && i < search->found; i++)
		if (search->candidates[i].base == image->base)
			return i;
	for (const Elf64_Dyn *entry = image->dynamic; entry && entry->d_tag != DT_NULL; entry++)
		for (__u32 i = 0; entry->d_tag == DT_NEEDED && i < search->found; i++)
			if (same(file_name(search->candidates[i].path),
				 file_name(image->strings + entry->d_un.d_val)))
				return i;
	return 0;
}

/* Not inlined: its memory is on the stack only while it runs. */
static __attribute__((noinline)) struct target find_later(__u32 stub, __u64 caller)
{
	struct search search = { .stub = stub, .caller = caller };
	if (dl_iterate_phdr)
		dl_iterate_phdr(look_for, &search);
	if (!search.found)
		return (struct target){ .definition = NOT_RECORDED };
	__u32 which = chosen(&search);
	void *real = search.candidates[which].real;
	const char *path = search.candidates[which].path;
	/* A signal's handler may be here again. */
	if (!take_lock(&looking))
		return (struct target){
			.real = real,
			.definition = is_wanted(stub, path) ? UNSEEN : NOT_RECORDED,
		};
	struct target target = target_of(stub, path, real);
	if (search.of_caller.dynamic) {
		__u32 at = 0;
		while (at < CALLERS - 1 && callers[stub][at].generation == generation)
			at++;
		callers[stub][at].low = search.of_caller.low;
		callers[stub][at].high = search.of_caller.high;
		callers[stub][at].target = target;
		callers[stub][at].generation = generation;
	}
	let_go(&looking);
	return target;
}

HIDDEN struct target find(__u32 stub, __u64 caller)
{
	struct target target = targets[stub];
	if (LIKELY(target.real != 0))
		return target;
	if (take_lock(&looking)) {
		for (__u32 at = 0; at < CALLERS; at++)
			if (callers[stub][at].generation == generation &&
			    caller >= callers[stub][at].low && caller < callers[stub][at].high) {
				target = callers[stub][at].target;
				break;
			}
		let_go(&looking);
	}
	return target.real ? target : find_later(stub, caller);
}

/* A function of the page that the kernel maps into every process; 0 if there is none. */
HIDDEN __u64 find_in_kernel_page(const char *name)
{
	__u64 page = getauxval ? getauxval(AT_SYSINFO_EHDR) : 0;
	if (!page)
		return 0;
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)page;
	struct dl_phdr_info info = {
		.dlpi_phdr = (const Elf64_Phdr *)(page + header->e_phoff),
		.dlpi_phnum = header->e_phnum,
	};
	for (int i = 0; i < header->e_phnum; i++)
		if (info.dlpi_phdr[i].p_type == PT_LOAD)
			info.dlpi_addr = page - info.dlpi_phdr[i].p_vaddr;
	struct image image;
	if (!image_of(&info, &image))
		return 0;
	const Elf64_Sym *symbol = symbol_of(&image, name, gnu_hash(name), sysv_hash(name));
	return symbol ? image.base + symbol->st_value : 0;
}

/* A library may go: what was found in it is forgotten, before and behind. */
EXPORTED int dlclose(void *handle)
{
	int (*real)(void *) = find(MAX_STUBS, (__u64)__builtin_return_address(0)).real;
	if (!real)
		return -1;
	ADD(&generation, 1);
	int result = real(handle);
	ADD(&generation, 1);
	return result;
}
