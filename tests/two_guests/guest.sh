#!/usr/bin/env bash
# Runs in each of two emulated machines (scripts/two_guests.sh): a web server records itself on one, its client
# on the other one, twice. The rate of the server's clock changes meanwhile: first by as much as the
# kernel corrects a clock, then by the length of its ticks.
set -euo pipefail
role=$1 fathom=$2 clock=$3
here=$(dirname -- "$(readlink -f -- "$0")")
share=/run/share
rounds='frequency tick'
posts=14
# Writers to the disk of the server besides it.
writers=12

busybox hostname "$role"
number=0
[ "$role" = db ] || number=1
busybox ip link set eth0 up
busybox ip addr add "10.78.0.$((number + 1))/24" dev eth0
memory=$(grep -l 0x1110 /sys/bus/pci/devices/*/device)
memory=$(dirname -- "$memory")
echo 1 >"$memory/enable"
"$clock" "$memory/resource2" "$number" "$share/bounds" &
comparing=$!

# change ROUND: changes the rate of the clock until it is killed.
change() {
	while true; do
		case $1 in
		# 450 ppm faster, and slower.
		frequency)
			busybox adjtimex -q -f 29491200
			sleep 1.2
			busybox adjtimex -q -f -29491200
			sleep 1.3
			;;
		# 4 % faster for a time.
		tick)
			busybox adjtimex -q -t 10400
			sleep 1.2
			busybox adjtimex -q -t 10000
			sleep 1.3
			;;
		esac
	done
}

record() {
	say "records round $1"
	# Without the modules of the site, python starts faster.
	"$fathom" record --syscalls all -o "/tmp/$1.fathom" -- /usr/bin/python3 -IS "${@:2}"
	cp -r "/tmp/$1.fathom" "$share/"
	say "has recorded it"
}

# For the log, with the seconds since the machine started.
say() { echo "$(cut -d ' ' -f 1 /proc/uptime) $1" >&2; }

# crowd DISK: others write to it all the time, past the file system.
crowd() {
	local writer
	# Requests wait in the queue, and not for a place in it.
	echo 32 >"/sys/block/$1/queue/nr_requests"
	echo 32 >"/sys/block/$1/queue/iosched/async_depth"
	echo 0 >"/sys/block/$1/queue/wbt_lat_usec"
	for writer in $(seq "$writers"); do
		dd if=/dev/zero "of=/dev/$1" oflag=direct conv=notrunc bs=4096 "seek=$((16384 * writer))" status=none &
		crowding+=($!)
	done
}

if [ "$role" = db ]; then
	disk=$(grep -l fathom-slow /sys/block/vd*/serial)
	disk=$(basename -- "$(dirname -- "$disk")")
	echo "$disk" >"$share/disk"
	mkdir /tmp/orders
	mount "/dev/$disk" /tmp/orders
	crowding=()
	crowd "$disk"
	for round in $rounds; do
		change "$round" &
		changing=$!
		record "$round" "$here/server.py" 10.78.0.1 /tmp/orders/orders >"$share/$round.syncs"
		kill "$changing"
		wait "$changing" || true
	done
	kill "${crowding[@]}"
	wait "${crowding[@]}" || true
else
	for round in $rounds; do
		record "$round" "$here/client.py" 10.78.0.1 "$posts" >"$share/$round.posts"
	done
fi
[ "$role" != db ] || umount /tmp/orders
kill "$comparing"
wait "$comparing"
