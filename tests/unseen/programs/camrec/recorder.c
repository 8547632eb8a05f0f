/* Records four cameras; a frame counts once it is on disk (O_DSYNC). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CAMS 4

int main(void)
{
	static char frame[96 * 1024];
	int cam[CAMS];
	char name[32];
	for (int c = 0; c < CAMS; c++) {
		snprintf(name, sizeof name, "cam%d.raw", c);
		cam[c] = open(name, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_DSYNC, 0644);
		if (cam[c] < 0) {
			perror(name);
			return 1;
		}
	}
	int d = open(".", O_RDONLY);
	if (d < 0 || fsync(d)) {
		perror(".");
		return 1;
	}
	for (int f = 0; f < 100; f++)
		for (int c = 0; c < CAMS; c++) {
			memset(frame, f * 31 + c, sizeof frame);
			if (write(cam[c], frame, sizeof frame) != sizeof frame) {
				perror("frame");
				return 1;
			}
		}
	for (int c = 0; c < CAMS; c++)
		close(cam[c]);
	return 0;
}
