/* Write-ahead log with group commit: eight clients, one of them syncs for all that wait. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE (32l << 20)
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static char buf[1 << 20], out[1 << 20];
static size_t fill;
static off_t end;
static unsigned long queued, durable;
static int flushing, fd;

static void commit(const char *rec, size_t n)
{
	pthread_mutex_lock(&m);
	memcpy(buf + fill, rec, n);
	fill += n;
	unsigned long me = ++queued;
	while (durable < me) {
		if (flushing) {
			pthread_cond_wait(&c, &m);
			continue;
		}
		flushing = 1;
		size_t len = fill;
		unsigned long upto = queued;
		off_t at = end;
		memcpy(out, buf, len);
		fill = 0;
		end += len;
		pthread_mutex_unlock(&m);
		if (pwrite(fd, out, len, at) != (ssize_t)len || fdatasync(fd)) {
			perror("wal");
			exit(1);
		}
		pthread_mutex_lock(&m);
		durable = upto;
		flushing = 0;
		pthread_cond_broadcast(&c);
	}
	pthread_mutex_unlock(&m);
}

static void *client(void *a)
{
	char rec[8192];
	memset(rec, 'a' + (int)(long)a, sizeof rec);
	for (int i = 0; i < 150; i++)
		commit(rec, sizeof rec);
	return NULL;
}

int main(void)
{
	pthread_t t[8];
	fd = open("store.wal", O_CREAT | O_RDWR, 0644);
	int d = open(".", O_RDONLY | O_DIRECTORY);
	if (fd < 0 || d < 0 || posix_fallocate(fd, 0, SIZE) || fsync(fd) || fsync(d)) {
		perror("store.wal");
		return 1;
	}
	for (long i = 0; i < 8; i++)
		pthread_create(&t[i], NULL, client, (void *)i);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	close(fd);
	return 0;
}
