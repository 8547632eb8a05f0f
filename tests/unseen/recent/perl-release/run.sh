exec perl release.pl
