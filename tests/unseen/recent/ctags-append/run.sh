# as the Makefile of the project has it since long ago
: > tags
find src -name '*.c' -exec ctags -a -f tags {} \;
wc -l tags
