# the volume's pool has less room than the volume promises
exec unshare -m sh -c '
mount -t tmpfs -o size=6m none thin &&
truncate -s 64M thin/disk &&
mkfs.ext4 -q -F -O ^has_journal -E lazy_itable_init=1,nodiscard thin/disk &&
mount -o loop thin/disk volume &&
./outbox volume/outbox
rc=$?
umount volume
exit $rc'
