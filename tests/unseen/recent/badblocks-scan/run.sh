/sbin/badblocks -b 4096 -c 2 disk.img 48000
