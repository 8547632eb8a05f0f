find src -name '*.c' | ctags -f tags -L -
wc -l tags
