mksquashfs root image.squashfs -quiet -no-progress && sync image.squashfs . && unsquashfs -s image.squashfs | grep -i inodes
