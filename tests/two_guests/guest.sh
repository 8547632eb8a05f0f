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
	case $1 in
	# 450 ppm faster, and slower.
	frequency) while true; do
		busybox adjtimex -q -f 29491200
		sleep 1.7
		busybox adjtimex -q -f -29491200
		sleep 2.3
	done ;;
	# 4 % faster for a time.
	tick)
		sleep 2
		busybox adjtimex -q -t 10400
		sleep 2
		busybox adjtimex -q -t 10000
		sleep 60
		;;
	esac
}

record() {
	"$fathom" record --syscalls all --spans http -o "/tmp/$1.fathom" -- /usr/bin/python3 "${@:2}"
	cp -r "/tmp/$1.fathom" "$share/"
}

if [ "$role" = db ]; then
	disk=$(grep -l fathom-slow /sys/block/vd*/serial)
	mkdir /tmp/orders
	mount "/dev/$(basename -- "$(dirname -- "$disk")")" /tmp/orders
	for round in $rounds; do
		change "$round" &
		changing=$!
		record "$round" "$here/server.py" 10.78.0.1 /tmp/orders/orders
		kill "$changing"
		wait "$changing" || true
	done
else
	for round in $rounds; do
		record "$round" "$here/client.py" 10.78.0.1 "$posts" >"$share/$round.posts"
	done
fi
[ "$role" != db ] || umount /tmp/orders
kill "$comparing"
wait "$comparing"
