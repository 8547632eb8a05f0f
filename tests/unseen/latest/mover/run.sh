exec unshare -m sh -c '
mount -o loop disk card &&
./mover camera card
rc=$?
umount card
exit $rc'
