pv -q -B 128k disk.img > disk.copy
stat -c %s disk.copy
