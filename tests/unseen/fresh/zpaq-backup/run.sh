zpaq add backup.zpaq projects -m1 -t2 && ls -l backup.zpaq
