/* Checks a volume past the page cache: four threads, two megabytes each at a time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 2 << 20, THREADS = 4 };

static atomic_llong next;
static _Atomic uint64_t total;
static int fd, failed;
static off_t size;

static void *check(void *unused)
{
	unsigned char *piece;
	uint64_t hash, sum = 0;
	off_t at;

	if (posix_memalign((void **)&piece, 4096, PIECE)) {
		failed = 1;
		return NULL;
	}
	while ((at = atomic_fetch_add(&next, PIECE)) < size) {
		off_t done = 0, want = size - at < PIECE ? size - at : PIECE;

		while (done < want) {
			ssize_t n = pread(fd, piece + done, PIECE - done, at + done);
			if (n <= 0) {
				failed = 1;
				break;
			}
			done += n;
		}
		hash = at;
		for (off_t i = 0; i < done; i++)
			hash = (hash ^ piece[i]) * 0x100000001b3u;
		sum += hash;
	}
	atomic_fetch_add(&total, sum);
	free(piece);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	struct stat st;

	if (argc != 2 || (fd = open(argv[1], O_RDONLY | O_DIRECT)) < 0 || fstat(fd, &st)) {
		perror("dsum");
		return 1;
	}
	size = st.st_size;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, check, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%016llx%s\n", (unsigned long long)total, failed ? " failed" : "");
	return failed;
}
