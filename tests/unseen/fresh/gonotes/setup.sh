mkdir notes
awk 'BEGIN { for (n = 0; n < 2500; n++) { f = sprintf("notes/note%05d", n); for (i = 0; i < 40; i++) printf "line %d of note %d with some words\n", i, n > f; close(f) } }'
