/* Moves the pictures of a camera onto a card. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int move(const char *from, const char *to)
{
	static char buffer[1 << 16];
	FILE *in = fopen(from, "r");
	FILE *out = in ? fopen(to, "w") : NULL;
	size_t n;

	if (!out) {
		fprintf(stderr, "%s: %s\n", to, strerror(errno));
		if (in)
			fclose(in);
		return -1;
	}
	setvbuf(out, NULL, _IOFBF, 1 << 18);
	while ((n = fread(buffer, 1, sizeof buffer, in)) > 0)
		fwrite(buffer, 1, n, out);
	fflush(out);
	fsync(fileno(out));
	fclose(out);
	fclose(in);
	return unlink(from);
}

int main(int argc, char **argv)
{
	char from[512], to[512];
	struct dirent *entry;
	int moved = 0;
	DIR *dir = argc == 3 ? opendir(argv[1]) : NULL;

	if (!dir) {
		fprintf(stderr, "usage: mover FROM TO\n");
		return 2;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(from, sizeof from, "%s/%s", argv[1], entry->d_name);
		snprintf(to, sizeof to, "%s/%s", argv[2], entry->d_name);
		if (move(from, to) == 0)
			moved++;
	}
	closedir(dir);
	printf("%d pictures moved\n", moved);
	return 0;
}
