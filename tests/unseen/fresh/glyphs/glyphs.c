/* Renders text with the glyphs of a font file: each glyph has an entry of 16 bytes in a table, and its outline elsewhere. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct entry {
	uint32_t at, size, advance, flags;
};

static int glyph(FILE *font, uint32_t code, struct entry *e, unsigned char *outline)
{
	if (fseek(font, code * sizeof *e, SEEK_SET) || fread(e, sizeof *e, 1, font) != 1)
		return -1;
	if (fseek(font, e->at, SEEK_SET) || fread(outline, 1, e->size, font) != e->size)
		return -1;
	return 0;
}

int main(int argc, char **argv)
{
	FILE *font = fopen("face.fnt", "rb");
	unsigned char outline[256];
	struct entry e;
	uint64_t width = 0;
	uint32_t code = 17;
	if (!font)
		return 1;
	for (int n = 0; n < 700000; n++) {
		code = (code * 1103515245u + 12345u) & 0x7fffffff;
		if (glyph(font, code % 20000, &e, outline))
			return 1;
		width += e.advance + outline[0];
	}
	printf("%llu\n", (unsigned long long)width);
	fclose(font);
	return 0;
}
