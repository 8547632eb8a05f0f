/* Scores documents by the vectors of their words. The table of vectors is mapped. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIMENSIONS 256
#define WORDS_PER_DOCUMENT 40
#define DOCUMENTS 300

struct table {
	const float *vectors;
	size_t count;
};

static int table_open(struct table *t, const char *name)
{
	struct stat st;
	int fd = open(name, O_RDONLY);

	if (fd < 0 || fstat(fd, &st))
		return -1;
	void *m = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (m == MAP_FAILED)
		return -1;
	/* words are anywhere in the table */
	madvise(m, st.st_size, MADV_RANDOM);
	t->vectors = m;
	t->count = st.st_size / (DIMENSIONS * sizeof(float));
	return 0;
}

static uint64_t hash_word(uint64_t w)
{
	w ^= w >> 31;
	w *= 0x9e3779b97f4a7c15ull;
	w ^= w >> 29;
	w *= 0xbf58476d1ce4e5b9ull;
	return w ^ w >> 32;
}

static float score(const struct table *t, uint64_t document)
{
	float sum[DIMENSIONS] = { 0 }, s = 0;

	for (int w = 0; w < WORDS_PER_DOCUMENT; w++) {
		size_t row = hash_word(document * 1000 + w) % t->count;
		const float *v = t->vectors + row * DIMENSIONS;
		for (int i = 0; i < DIMENSIONS; i++)
			sum[i] += v[i];
	}
	for (int i = 0; i < DIMENSIONS; i++)
		s += sum[i] * sum[i];
	return s / WORDS_PER_DOCUMENT;
}

int main(void)
{
	struct table t;
	float best = 0;

	if (table_open(&t, "vectors.f32")) {
		perror("vectors.f32");
		return 1;
	}
	for (uint64_t d = 1; d <= DOCUMENTS; d++) {
		float s = score(&t, d);
		if (s > best)
			best = s;
	}
	printf("%d documents, best %.3f\n", DOCUMENTS, best);
	return 0;
}
