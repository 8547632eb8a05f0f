fallocate -l 98304000 download.bin
