/* Records video past the page cache; the newest pictures are read for the preview, the index is kept in the first block. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FRAME = 512 << 10, FRAMES = 160, HEADER = 4096 };

struct header {
	uint64_t newest;
	uint64_t at;
};

static int fail(const char *what)
{
	perror(what);
	return 1;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "video.ring";
	int video = open(name, O_CREAT | O_WRONLY | O_DIRECT, 0644);
	int preview = open(name, O_RDWR);
	unsigned char *frame, *small = malloc(FRAME);
	struct header header = { 0 };
	unsigned long brightness = 0;

	if (video < 0 || preview < 0 || posix_memalign((void **)&frame, 4096, FRAME))
		return fail(name);
	if (posix_fallocate(video, 0, HEADER + (off_t)FRAME * FRAMES))
		return fail("fallocate");
	for (uint64_t n = 0; n < FRAMES; n++) {
		off_t at = HEADER + (off_t)n * FRAME;

		memset(frame, (int)(n * 37), FRAME);
		if (pwrite(video, frame, FRAME, at) != FRAME)
			return fail("video");
		header.newest = n;
		header.at = at;
		if (pwrite(preview, &header, sizeof header, 0) != sizeof header)
			return fail("header");
		if (pread(preview, small, FRAME, at) != FRAME)
			return fail("preview");
		for (int i = 0; i < FRAME; i += 64)
			brightness += small[i];
		usleep(4000);
	}
	if (fsync(video))
		return fail("sync");
	printf("%d pictures, brightness %lu\n", FRAMES, brightness / FRAMES);
	return 0;
}
