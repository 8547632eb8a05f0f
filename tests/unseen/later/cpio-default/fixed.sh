find data -type f | sort | cpio -o -H newc --quiet -C 1048576 > backup.cpio
