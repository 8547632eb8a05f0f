mkdir vms backup
for n in 1 2; do
  truncate -s 600M vms/disk$n.img
  for p in 1 40 300 550; do dd if=/dev/urandom of=vms/disk$n.img bs=1M count=2 seek=$((p + n)) conv=notrunc status=none; done
done
