gcc -O2 -o glyphs glyphs.c
