truncate -s 300M disk.img
mkfs.ext4 -q -F -b 4096 -d root disk.img && e2fsck -fn disk.img
