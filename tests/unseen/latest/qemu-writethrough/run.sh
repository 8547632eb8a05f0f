qemu-img convert -t writethrough -f qcow2 -O raw guest.qcow2 guest.img
qemu-img info guest.img | grep size
