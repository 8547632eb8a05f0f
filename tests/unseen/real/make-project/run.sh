make -s && ./prog
