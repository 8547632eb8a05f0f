# the volume is thinly provisioned: it promises 64 MB and has 4 MB
exec unshare -m sh -c '
mount -t tmpfs -o size=4m none thin &&
truncate -s 64M thin/disk &&
mkfs.ext4 -q -F -O ^has_journal -E lazy_itable_init=1,nodiscard thin/disk &&
mount -o loop thin/disk volume &&
./journal volume/journal
rc=$?
umount volume
exit $rc'
