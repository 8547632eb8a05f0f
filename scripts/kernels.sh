# shellcheck shell=bash
# The end-to-end tests on other kernels: Debian's, in an emulator. The emulated
# machine boots a kernel with a small initramfs, mounts the root directory of
# this one (read-only, over 9p) and an empty disk on /tmp, and runs the test
# program that was built here.

# The kernels: name, architecture, archive of Debian (main or security), suite, and what the
# package is called. The newest that matches is taken, as Debian drops older ones. The
# slowest first, so that no machine is left alone at the end. Those for arm64 run when they are
# asked for by name (scripts/arm64.sh).
kernel_table='
newest     amd64  main      trixie-backports    [0-9]+[.][0-9]+[.][0-9]+[+]deb13
6.12       amd64  security  bookworm-security   6[.]12[.][0-9]+[+]deb12
6.1        amd64  security  bookworm-security   6[.]1[.]0-[0-9]+
5.10       amd64  security  bullseye-security   5[.]10[.]0-[0-9]+
arm64      arm64  security  bookworm-security   6[.]12[.][0-9]+[+]deb12
arm64-6.1  arm64  security  bookworm-security   6[.]1[.]0-[0-9]+
'
# Of the kernels that are run.
architecture=amd64
# A name with this behind it (6.12-smp32) is the same kernel on a machine with so many processors.
# One thread emulates them all, in turns: with a thread each the emulator may still run on one what
# another has patched out of the kernel's code, and attaching programs patches.
many_processors='^(.+)-smp([0-9]+)$'
# A name with this behind it (arm64-counts) is the same kernel on a machine whose clock goes on by a
# nanosecond with each instruction: the emulator's processor for arm64 counts instructions only then.
counting='^(.+)-counts$'
instruction_clock=(-icount "shift=0,sleep=off")
# Tests of what a processor counts, for these.
counting_filters=(counters::counters_of_the_processor)
# Tests of exactness, for these: that every call is recorded as it was made or counted as lost.
many_filters=(ground_truth:: losses:: uring::every_storage_operation aio::every_storage_operation)
# Modules for what the emulated machine has.
kernel_modules='virtio_pci virtio_blk virtio_rng virtio_net 9pnet_virtio 9p ext4 loop null_blk xfs btrfs
	dm-mod dm-delay dm-flakey raid0 raid1 nvme sd_mod scsi_debug
	nfs nfsv4 nfsd'
# Tests that run there with all others, and the kernels on which they do: that programs load, and that
# calls, operations, content, filters, bytes of sockets and requests to NFS servers are right. Each of
# the four kernels loads another set of programs.
kernel_basics='
ground_truth::every_storage_call    newest 6.12 6.1 5.10
aio::every_storage_operation        newest 5.10
filters::outcomes::only_slow_calls  newest 5.10
functions::each_visit               newest 6.1
content::hashes_of_few              6.1
protocols::other_connections        6.1
filters::files::relative_paths      6.12
guest_devices::nfs                  6.12
'
# Whether only those run.
kernel_basics_only=
# Tests that run there when asked for: what fathom chooses, and what it sees of calls, of operations
# of io_uring and AIO, of page faults, files and tasks, of content and of waits, and
# what filters leave. The others are left to the host, as emulation is slow.
kernel_filters=(kernel:: functions:: ground_truth::every_storage_call uring::every_storage_operation
	aio::every_storage_operation mapped::every_kind names::paths_follow
	processes::a_daemon waiting::killed_in_a_read content::hashes_of_few
	filters::outcomes::only_slow_calls filters::files::relative_paths guest_devices::nfs layers::waits_have library::
	protocols::other_connections tail::calls_beyond tail::calls_slower)
# Besides, on one kernel: the layers below the calls, devices whose times are known, and devices
# that fail, do not answer, or lie on others; and calls of libraries, as it attaches to each function
# on its own, unlike kernels since 6.6.
layer_kernel=6.1
layer_filters=(devices:: guest_devices:: layers::requests_to_a_device_under_ext4 library::calls_are)
# What running them needs (wants_test in versions.sh).
kernel_tools='qemu-system-x86_64 busybox depmod modprobe cpio xz'
# A kernel whose tests take longer than this many seconds is counted as failed; twice as many
# for arm64.
kernel_patience=${FATHOM_KERNEL_PATIENCE:-1800}
# Machines at a time: each has one processor and 3 GiB of memory.
kernel_machines=2

kernel_names() { awk -v architecture="$architecture" '$2 == architecture { print $1 }' <<<"$kernel_table"; }

# The kernel of a name, and the processors of its machine.
kernel_of() {
	if [[ $1 =~ $many_processors || $1 =~ $counting ]]; then say "${BASH_REMATCH[1]}"; else say "$1"; fi
}
processors_of() { if [[ $1 =~ $many_processors ]]; then say "${BASH_REMATCH[2]}"; else say 1; fi; }

# choose_kernel NAME: sets architecture to that of the kernel.
choose_kernel() {
	local found
	found=$(awk -v name="$(kernel_of "$1")" '$1 == name { print $2 }' <<<"$kernel_table")
	[ -n "$found" ] || die 2 "no kernel named $1" "one of: $(awk 'NF { print $1 }' <<<"$kernel_table" | tr '\n' ' ')"
	architecture=$found
}

# Prints the address of Debian's archive $1 (main or security) as this machine's
# apt knows it: mirrors and proxies are the user's affair.
debian_archive() {
	local label=Debian
	[ "$1" = main ] || label=Debian-Security
	# shellcheck disable=SC2016 # apt-get replaces the names
	apt-get indextargets --format '$(LABEL) $(REPO_URI)' 2>/dev/null |
		awk -v label="$label" '$1 == label { print $2; exit }'
}

# kernel_apt DIR COMMAND...: apt with sources, lists and cache of its own below
# DIR, so that nothing of the system's changes; for $architecture.
kernel_apt() {
	local dir=$1 command=$2
	shift 2
	"$command" -q -o "Dir::Etc::sourcelist=$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o "Dir::State::lists=$dir/lists" -o "Dir::Cache=$dir/cache" \
		-o Acquire::Languages=none -o APT::Sandbox::User=root -o "APT::Architecture=$architecture" "$@"
}

# fetch_kernel NAME DIR: leaves DIR/version, DIR/vmlinuz, DIR/modules/*.ko and
# DIR/modules/list (in the order of loading). Says why when it cannot. One that was
# fetched with other modules is fetched again.
fetch_kernel() {
	local name=$1 dir=$2 work archive suite pattern uri version packages
	[ ! -e "$dir/version" ] || [ "$(cat -- "$dir/modules/wanted" 2>/dev/null)" != "$kernel_modules" ] || return 0
	read -r _ _ archive suite pattern < <(awk -v name="$name" '$1 == name' <<<"$kernel_table")
	have apt-get || { say "there is no apt-get to fetch it with" && return 1; }
	uri=$(debian_archive "$archive")
	[ -n "$uri" ] || { say "apt has no archive of Debian ($archive)" && return 1; }
	rm -rf -- "$dir"
	work=$dir.fetching
	rm -rf -- "$work"
	mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root" "$dir/modules"
	printf 'deb [signed-by=%s] %s %s main\n' \
		/usr/share/keyrings/debian-archive-keyring.gpg "$uri" "$suite" >"$work/sources.list"
	kernel_apt "$work" apt-get update >"$work/log" 2>&1 ||
		{ say "apt-get update failed for $suite: $(tail -n 1 "$work/log")" && return 1; }
	version=$(kernel_apt "$work" apt-cache search --names-only "^linux-image-$pattern-$architecture\$" |
		sed -n 's/^linux-image-\([^ ]*\) .*/\1/p' | sort -V | tail -n 1)
	[ -n "$version" ] || { say "no such kernel in $suite" && return 1; }
	# Newer packages are split: the parts carry the same version.
	packages=$(kernel_apt "$work" apt-cache depends "linux-image-$version" |
		sed -n "s/^ *Depends: \(linux-[a-z]*-$version\)\$/\1/p")
	# shellcheck disable=SC2086 # one word a package
	(cd -- "$work" && kernel_apt "$work" apt-get download "linux-image-$version" $packages) \
		>"$work/log" 2>&1 ||
		{ say "downloading $version failed: $(tail -n 1 "$work/log")" && return 1; }
	unpack_kernel "$work" "$version" "$dir" >"$work/log" 2>&1 ||
		{ say "unpacking $version failed: $(tail -n 1 "$work/log")" && return 1; }
	rm -rf -- "$work"
	printf '%s\n' "$version" >"$dir/version"
}

# unpack_kernel WORK VERSION DIR
unpack_kernel() {
	local work=$1 version=$2 dir=$3 deb base image module file
	for deb in "$work"/*.deb; do
		dpkg-deb -x "$deb" "$work/root" || return
	done
	base=$work/root
	[ -d "$base/lib/modules" ] || base=$work/root/usr
	image=$work/root/boot/vmlinuz-$version
	[ -e "$image" ] || image=$base/lib/modules/$version/vmlinuz
	cp -- "$image" "$dir/vmlinuz" || return
	depmod -b "$base" "$version" || return
	for module in $kernel_modules; do
		# Nothing for one that is built in.
		modprobe -d "$base" -S "$version" --show-depends "$module" |
			awk '$1 == "insmod" { print $2 }'
	done | awk '!seen[$0]++' | while read -r file; do
		module=$(basename -- "$file")
		module=${module%.xz}
		case $file in
		*.xz) xz -dc -- "$file" >"$dir/modules/$module" || return ;;
		*) cp -- "$file" "$dir/modules/$module" || return ;;
		esac
		printf '%s\n' "$module"
	done >"$dir/modules/list"
	printf '%s\n' "$kernel_modules" >"$dir/modules/wanted"
	[ -s "$dir/modules/list" ]
}

# make_initramfs DIR: DIR/initramfs.gz of busybox, the modules and guest-init.
make_initramfs() {
	local dir=$1 tree=$1/initramfs library busybox
	busybox=$(command -v busybox)
	[ "$architecture" = amd64 ] || busybox=$arm64_root/bin/busybox
	rm -rf -- "$tree"
	mkdir -p "$tree/bin"
	cp -- "$busybox" "$tree/bin/busybox"
	# None when it is linked statically.
	{ ldd "$tree/bin/busybox" 2>/dev/null || true; } | sed -n 's#^[^/]*\(/[^ ]*\).*#\1#p' |
		while read -r library; do
			install -D -- "$library" "$tree$library"
		done
	cp -r -- "$dir/modules" "$tree/modules"
	install -m 755 scripts/guest-init "$tree/init"
	(cd -- "$tree" && find . | cpio -o -H newc --quiet) | gzip -1 >"$dir/initramfs.gz"
	rm -rf -- "$tree"
}

# Further options of the emulator.
emulator_options=()

# boot_kernel DIR SHARE [PROCESSORS]: runs scripts/guest-tests on $architecture, with SHARE as
# /run/share, until the machine ends. The exit status is the emulator's.
boot_kernel() {
	local dir=$1 share=$2 disk=$2.disk limited=$2.limited nvme=$2.nvme status=0 system=/ machine options
	local patience=$kernel_patience processors=${3:-1}
	case $architecture in
	amd64)
		machine=(qemu-system-x86_64 -cpu max)
		options='console=ttyS0 no_timer_check'
		;;
	arm64)
		# Pointers are signed with a hash that is cheap to emulate.
		machine=(qemu-system-aarch64 -M virt -cpu 'max,pauth-impdef=on')
		options='console=ttyAMA0'
		system=$arm64_root
		# All of kernel_filters take a quiet processor 13 minutes.
		patience=$((2 * kernel_patience))
		# Where guest-tests puts the tree.
		mkdir -p "$system$root"
		;;
	esac
	if [ "$processors" -gt 1 ]; then
		# Each takes its turn on one thread; who waits for another waits for all turns. So the
		# kernel's patience with a processor that does not answer is off.
		patience=$((processors * kernel_patience / 4))
		options+=' nowatchdog rcupdate.rcu_cpu_stall_suppress=1'
	fi
	truncate -s 6G "$disk"
	# Its serial number says how many requests a second it takes.
	truncate -s 64M "$limited"
	truncate -s 256M "$nvme"
	mkfs.ext4 -q -F "$disk"
	install -m 755 scripts/guest-tests "$share/guest-tests"
	# One processor unless more are asked for (many_processors says why one thread).
	# On a busy host it may miss the ticks by which the kernel checks its timer.
	# A recorder has rings of 32 MiB for each processor.
	timeout "$patience" "${machine[@]}" -accel tcg,thread=single -smp "$processors" \
		-m $((3072 + 128 * (processors - 1))) \
		"${emulator_options[@]}" \
		-nographic -nodefaults -no-reboot -serial stdio -monitor none \
		-kernel "$dir/vmlinuz" -initrd "$dir/initramfs.gz" \
		-append "$options panic=-1 quiet mitigations=off" \
		-drive "file=$disk,if=none,id=disk,format=raw,cache=unsafe" \
		-device virtio-blk-pci,drive=disk -device virtio-rng-pci \
		-drive "file=$limited,if=none,id=limited,format=raw,cache=unsafe,throttling.iops-total=50" \
		-device virtio-blk-pci,drive=limited,serial=fathom-iops-50 \
		-drive "file=$nvme,if=none,id=nvme,format=raw,cache=unsafe" \
		-device nvme,drive=nvme,serial=fathom-nvme \
		-fsdev "local,id=host,path=$system,readonly=on,security_model=none,multidevs=remap" \
		-device virtio-9p-pci,fsdev=host,mount_tag=host \
		-fsdev "local,id=share,path=$share,security_model=none" \
		-device virtio-9p-pci,fsdev=share,mount_tag=share \
		-fsdev "local,id=tree,path=$root,readonly=on,security_model=none,multidevs=remap" \
		-device virtio-9p-pci,fsdev=tree,mount_tag=tree \
		</dev/null >"$share/console" 2>&1 || status=$?
	rm -f -- "$disk" "$limited" "$nvme"
	return "$status"
}

# kernel_counts FILE PASSED FAILED SKIPPED: leaves the counts of one kernel.
kernel_counts() { printf '%s\n' "$2 $3 $4" >"$1"; }

# test_kernel NAME PROGRAM COUNTS [FILTER...]: says what came of the tests, and
# leaves their counts in the file COUNTS. For a subshell: several run at a time.
test_kernel() {
	local name=$1 program=$2 counts=$3 dir share reason version start=$SECONDS
	local passed failed ignored skipped status=0 processors threads=2
	dir=.deps/kernels/$(kernel_of "$name") processors=$(processors_of "$name")
	shift 3
	[ "$processors" -eq 1 ] || threads=1
	local emulator_options=()
	[[ ! $name =~ $counting ]] || emulator_options=("${instruction_clock[@]}")
	if [ -n "$kernel_basics_only" ]; then
		# shellcheck disable=SC2046 # one word a test
		set -- $(awk -v name="$name" '{ for (i = 2; i <= NF; i++) if ($i == name) print $1 }' <<<"$kernel_basics")
	elif [ $# -eq 0 ]; then
		set -- "${kernel_filters[@]}"
		[ "$name" != "$layer_kernel" ] || set -- "$@" "${layer_filters[@]}"
		[ "$processors" -eq 1 ] || set -- "${many_filters[@]}"
		[[ ! $name =~ $counting ]] || set -- "${counting_filters[@]}"
	fi
	mkdir -p .deps/kernels
	reason=$(fetch_kernel "$(kernel_of "$name")" "$root/$dir") || {
		say "SKIPPED: kernel $name: ${reason:-it could not be fetched}"
		kernel_counts "$counts" 0 0 1
		return
	}
	version=$(<"$dir/version")
	share=$(mktemp -d "$root/$dir/run.XXXXXX")
	make_initramfs "$dir" || {
		say "SKIPPED: kernel $name: its initramfs could not be made"
		kernel_counts "$counts" 0 0 1
		return
	}
	{
		printf 'root=%q\nprogram=%q\n' "$root" "$program"
		printf 'fathom=%q\n' "$(dirname -- "$program")/../fathom"
		[ "$architecture" = amd64 ] || printf 'export FATHOM_WORKLOADS=%q\n' "$arm64/workloads"
		printf 'arguments=(--include-ignored --test-threads %s ' "$threads"
		printf '%q ' "$@"
		printf ')\n'
	} >"$share/settings"
	boot_kernel "$dir" "$share" "$processors" || status=$?
	# 124: timeout(1) ended it.
	if [ "$status" -ne 0 ] && [ "$status" -ne 124 ] && [ ! -e "$share/started" ]; then
		say "SKIPPED: kernel $name: the emulator did not start: $(tail -n 1 "$share/console")"
		kernel_counts "$counts" 0 0 1
		return
	fi
	read -r passed failed ignored < <(count_results "$share/log")
	skipped=$(grep -c '^SKIPPED: ' "$share/skips" 2>/dev/null || true)
	skipped=${skipped:-0}
	if [ "$(cat "$share/status" 2>/dev/null)" != 0 ] && [ "$failed" -eq 0 ]; then
		note "FAILED: the tests on Linux $version did not run to their end; the machine's last words:"
		tail -n 15 "$share/console" >&2
		failed=1
	fi
	if [ "$failed" -gt 0 ]; then
		sed -n '/^failures:/,$p' "$share/log" 2>/dev/null | cut -c 1-500 | head -n 200
		failed_tests "$share/log" >"$counts.failed"
		note "all of it: $share"
	else
		sort -u "$share/skips" 2>/dev/null || true
		rm -rf -- "$share"
	fi
	# Those that skipped passed, too; when the machine was ended none is counted.
	passed=$((passed > skipped ? passed - skipped : 0))
	[ "$processors" -eq 1 ] || version+=", $processors processors"
	say "kernel $version: $passed passed, $failed failed, $((ignored + skipped)) skipped in $((SECONDS - start)) s"
	kernel_counts "$counts" "$passed" "$failed" "$((ignored + skipped))"
}

# Prints why no machine can be emulated here; nothing when one can.
no_machine() {
	local tool
	[ "$(uname -m)" = x86_64 ] || { say "the emulated machine is an x86-64 one" && return; }
	for tool in $kernel_tools; do
		have "$tool" || { say "$tool is not installed" && return; }
	done
}

# test_kernels [NAME [FILTER...]]: the tests on one kernel or on all.
test_kernels() {
	local names name program reason results passed failed skipped running=0 start=$SECONDS
	names=$(kernel_names)
	if [ $# -gt 0 ]; then
		names=$1
		shift
	fi
	if [ "$architecture" = arm64 ]; then reason=$(no_arm64); else reason=$(no_machine); fi
	if [ -n "$reason" ]; then
		for name in $names; do
			say "SKIPPED: kernel $name: $reason"
			tests_skipped=$((tests_skipped + 1))
		done
		return
	fi
	if [ "$architecture" = arm64 ]; then
		program=$(build_arm64) || die 1 "the tests for arm64 were not built"
	else
		program=$(cargo test --release --locked --workspace --no-run 2>&1 |
			sed -n 's/.*Executable end_to_end\/main.rs (\(.*\))/\1/p')
		[ -x "$program" ] || die 1 "the end-to-end tests were not built" "./do test builds them"
		# Nothing can be compiled over there.
		"$program" --exact workloads::every_workload_compiles >/dev/null ||
			die 1 "a workload of the tests does not compile" "$program workloads:: says why"
	fi
	note "tests on other kernels, emulated: $(tr '\n' ' ' <<<"$names")"
	results=$(mktemp -d .deps/kernels.XXXXXX)
	for name in $names; do
		if [ "$running" -ge "$kernel_machines" ]; then
			wait -n || true
			running=$((running - 1))
		fi
		# Its words in one piece, once it is over.
		(
			test_kernel "$name" "$root/$program" "$results/$name" "$@" >"$results/$name.says" 2>&1
			cat -- "$results/$name.says"
		) &
		running=$((running + 1))
	done
	wait
	for name in $names; do
		# No counts: its subshell has failed.
		read -r passed failed skipped < <(cat "$results/$name" 2>/dev/null || echo 0 1 0)
		tests_passed=$((tests_passed + passed))
		tests_failed=$((tests_failed + failed))
		tests_skipped=$((tests_skipped + skipped))
		[ "$failed" -eq 0 ] || failures+=("kernel $name: $failed tests: $(tr '\n' ' ' <"$results/$name.failed" 2>/dev/null)")
	done
	took "$start" "tests on other kernels"
	rm -rf -- "$results"
}

# count_there NAME PROGRAM [ARGUMENT...]: what PROGRAM says on an emulated kernel whose clock
# goes on by a nanosecond with each instruction: what it measures as nanoseconds are
# instructions, and the same in every run, whatever else this machine does.
count_there() {
	local name=$1 program=$2 dir=.deps/kernels/$1 share version
	local emulator_options=("${instruction_clock[@]}")
	shift 2
	grep -qx -- "$name" <<<"$(kernel_names)" || die 2 "no kernel named $name" \
		"one of: $(kernel_names | tr '\n' ' ')"
	mkdir -p .deps/kernels
	fetch_kernel "$name" "$root/$dir" || die 1 "kernel $name could not be fetched"
	version=$(<"$dir/version")
	make_initramfs "$dir"
	share=$(mktemp -d "$root/$dir/run.XXXXXX")
	{
		printf 'root=%q\nprogram=%q\nfathom=\narguments=(' "$root" "$program"
		printf '%q ' "$@"
		printf ')\n'
	} >"$share/settings"
	boot_kernel "$dir" "$share" || true
	say "Linux $version, emulated; ns are instructions"
	cat -- "$share/log" || die 1 "the emulated machine did not run it" "$share/console says more"
	[ "$(cat "$share/status" 2>/dev/null)" = 0 ] || die 1 "it failed there" "$share/console says more"
	rm -rf -- "$share"
}

# hook_costs [NAME...]: what an empty program costs at each kind of place, on this
# kernel and on those named (benches/hook_cost.c).
hook_costs() {
	local headers out=$root/target/hook-cost name
	headers=$(find target/release/build -path '*/out/include/bpf/bpf_helpers.h' -print -quit)
	[ -n "$headers" ] || die 1 "libbpf is not built" "./do build builds it"
	headers=$(dirname -- "$headers")
	mkdir -p "$out"
	"${CLANG:-clang}" -g -O2 -target bpf -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-parameter \
		"-D__TARGET_ARCH_$(uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')" -I "/usr/include/$(uname -m)-linux-gnu" \
		-isystem "$headers" -c bpf/bench/hooks.bpf.c -o "$out/hooks.bpf.o"
	"${CC:-cc}" -O2 -Wall -I "$headers/.." -o "$out/hook_cost" benches/hook_cost.c \
		"$headers/../../libbpf.a" -lelf -lz
	say "Linux $(uname -r), this machine"
	"$out/hook_cost" "$out/hooks.bpf.o"
	for name in "$@"; do
		count_there "$name" "$out/hook_cost" "$out/hooks.bpf.o"
	done
}

# filter_costs [NAME...]: what calls cost that filters leave out, beside empty programs and
# the floor, on this kernel and on those named.
filter_costs() {
	local name arguments=(--only pread --tracers "empty,filter,fathom full")
	say "Linux $(uname -r), this machine"
	as_root target/release/fathom-bench "${arguments[@]}" --programs --reps 3
	for name in "$@"; do
		count_there "$name" "$root/target/release/fathom-bench" "${arguments[@]}" \
			--calls 100000 --reps 1
	done
}
