# shellcheck shell=bash
# A set of sessions of two machines with clocks of their own: two emulated ones (kernels.sh) with a network
# between them. tests/two_guests has the programs that run there, and check.py, which compares the set with the
# clocks as tests/two_guests/clock.c has compared them.

# Their kernel, and their names: the first one has the server.
two_guests_kernel=6.12
two_guests=(db web)

# boot_two_guests DIR SHARE-OF-ALL: runs both to their end. Each has SHARE-OF-ALL/NAME as its share.
boot_two_guests() {
	local dir=$1 all=$2 name other number=0
	# If one fails, the other one waits for it.
	local kernel_patience=$((kernel_patience / 3))
	for name in "${two_guests[@]}"; do
		other=${two_guests[$((1 - number))]}
		local emulator_options=(
			-netdev "dgram,id=net,local.type=unix,local.path=$all/$name.net,remote.type=unix,remote.path=$all/$other.net"
			-device "virtio-net-pci,netdev=net,romfile=,mac=52:54:00:00:00:0$number"
			-object "memory-backend-file,id=both,share=on,mem-path=$all/memory,size=1M"
			-device "ivshmem-plain,memdev=both"
			-drive "file=$all/$name.slow,if=none,id=slow,format=raw,cache=unsafe,throttling.iops-total=50"
			# It takes 4 requests at a time; others wait in its queue. Behind the disk that guest-init takes for /tmp.
			-device "virtio-blk-pci,drive=slow,serial=fathom-slow,addr=0x1e,num-queues=1,queue-size=4"
		)
		# The file system is in front of the part that has other writers (guest.sh).
		truncate -s 1G "$all/$name.slow"
		mkfs.ext4 -q -F "$all/$name.slow" 32M
		mkdir "$all/$name"
		cp -- "$all/clock" "$all/$name/"
		{
			printf 'root=%q\nprogram=%q\nfathom=\n' "$root" "$root/tests/two_guests/guest.sh"
			printf 'arguments=(%q %q %q)\n' "$name" "$root/target/release/fathom" /run/share/clock
		} >"$all/$name/settings"
		# They start at different times, as other machines do.
		boot_kernel "$dir" "$all/$name" &
		number=$((number + 1))
		sleep 1
	done
	wait
}

# test_two_guests: one check of it all, counted.
test_two_guests() {
	local dir=.deps/kernels/$two_guests_kernel reason all name start=$SECONDS
	reason=$(no_machine)
	mkdir -p .deps/kernels
	[ -n "$reason" ] || reason=$(fetch_kernel "$two_guests_kernel" "$root/$dir") || reason=${reason:-its kernel could not be fetched}
	if [ -n "$reason" ]; then
		say "SKIPPED: two guests: $reason"
		tests_skipped=$((tests_skipped + 1))
		return
	fi
	make_initramfs "$dir" || die 1 "the initramfs could not be made"
	# Paths of sockets are short.
	all=$(mktemp -d /tmp/fathom-two.XXXXXX)
	"${CC:-cc}" -O2 -Wall -Wextra -Werror -o "$all/clock" tests/two_guests/clock.c || die 1 "the clock does not compile"
	note "two emulated machines"
	boot_two_guests "$dir" "$all"
	for name in "${two_guests[@]}"; do
		if [ ! -e "$all/$name/started" ]; then
			say "SKIPPED: two guests: the emulator did not start: $(tail -n 1 "$all/$name/console")"
			tests_skipped=$((tests_skipped + 1))
			return
		fi
	done
	check "two guests" check_two_guests "$all"
	note "it took $((SECONDS - start)) s"
}

# check_two_guests SHARE-OF-ALL: what they left.
check_two_guests() {
	local all=$1 name
	for name in "${two_guests[@]}"; do
		if [ "$(cat "$all/$name/status" 2>/dev/null)" != 0 ]; then
			note "machine $name has failed:"
			tail -n 20 "$all/$name/log" "$all/$name/console" >&2 || true
			return 1
		fi
	done
	if ! /usr/bin/python3 tests/two_guests/check.py "$fathom" "$all"; then
		note "all of it: $all"
		return 1
	fi
	rm -rf -- "$all"
}
