qemu-img convert -p -f raw -O qcow2 guest.raw guest.qcow2 > progress
sync guest.qcow2 .
qemu-img compare -f raw -F qcow2 guest.raw guest.qcow2
