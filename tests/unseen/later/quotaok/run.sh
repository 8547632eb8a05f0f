# 3 MB for each file
ulimit -f 6144
exec perl report.pl
