find data -type f | sort | cpio -o -H newc --quiet > backup.cpio
