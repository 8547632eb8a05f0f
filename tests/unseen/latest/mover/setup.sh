set -e
mkdir -p camera card
truncate -s 100M disk
mkfs.ext4 -q -F disk
i=0
while [ $i -lt 90 ]; do head -c 2M /dev/urandom > camera/img$i.jpg; i=$((i + 1)); done
