/sbin/badblocks -b 4096 -c 512 disk.img 48000
