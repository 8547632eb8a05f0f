perl emit.pl | cronolog logs/%Y/%m/access.log
wc -l logs/*/*/access.log
