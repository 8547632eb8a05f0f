# shellcheck shell=bash
# Formatting, lints and tests.

checks_passed=0
checks_failed=0
# What failed, and how long each part took, a line each, for the end of the output.
failures=()
times=()
tests_passed=0
tests_failed=0
tests_ignored=0
tests_skipped=0

# check WHAT COMMAND...: one check, counted; the others still run.
check() {
	local what=$1 start=$SECONDS
	shift
	if "$@"; then
		note "ok: $what ($((SECONDS - start)) s)"
		checks_passed=$((checks_passed + 1))
	else
		note "FAILED: $what"
		failures+=("$what")
		checks_failed=$((checks_failed + 1))
	fi
	took "$start" "$what"
}

# took START WHAT: parts that are over at once are not worth a line.
took() {
	[ $((SECONDS - $1)) -lt 10 ] || times+=("$(printf '%5d s  %s' $((SECONDS - $1)) "$2")")
}

run_lints() {
	check "formatting of Rust sources" cargo fmt --all --check
	check "formatting of C sources" check_c_format
	check "scripts (shellcheck)" shellcheck -x -a do .ci/run scripts/as-root \
		scripts/guest-tests tests/strace/*.sh tests/two_guests/*.sh examples/*/*.sh \
		examples/papers/*/*.sh benches/*.sh
	check "scripts of the emulated machine (shellcheck)" shellcheck -s sh scripts/guest-init
	check "directions of imports (scripts/imports.txt)" /usr/bin/python3 scripts/imports.py
	check "the check of imports" /usr/bin/python3 scripts/imports_test.py
	check "words of texts (scripts/words.txt)" /usr/bin/python3 scripts/words.py
	check "formatting and lints of the page (biome)" page_tool biome check --error-on-warnings .
	check "types of the page (tsc)" page_tool tsc --noEmit
	check "lints of Rust sources (clippy)" check_clippy
}

# Our C sources; what is generated from a kernel is not formatted.
c_sources() {
	find bpf tests benches crates/preload/object -name target -prune -o -name 'vmlinux*.h' -prune \
		-o -type f \( -name '*.c' -o -name '*.h' \) -print | sort
}

check_c_format() {
	local version sources=()
	mapfile -t sources < <(c_sources)
	version=$(clang-format --version | first_version)
	if [ "${version%%.*}" != "$format_clang" ]; then
		note "clang-format is version $version, the sources follow $format_clang: not checked"
		return 0
	fi
	clang-format --dry-run -Werror "${sources[@]}"
}

check_clippy() {
	local version deny=(-- -D warnings)
	version=$(rustc --version | first_version)
	if ! at_least "$lint_rust.999" "$version"; then
		note "Rust $version is newer than $lint_rust, whose lints are known: warnings are not errors"
		deny=()
	fi
	cargo clippy --release --locked --workspace --all-targets "${deny[@]}"
}

format_sources() {
	local sources=()
	cargo fmt --all
	mapfile -t sources < <(c_sources)
	clang-format -i "${sources[@]}"
	page_tool biome check --write .
}

all_lints() {
	run_lints
	[ "$checks_failed" -eq 0 ] || die 1 "$checks_failed of $((checks_passed + checks_failed)) checks failed" \
		"./do fmt mends formatting"
}

# Tests that record need root. Without it they run through sudo where that asks
# for no password; else each says that it skipped.
choose_runner() {
	local host
	is_root && return
	if have sudo && sudo -n true 2>/dev/null; then
		host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
		export "CARGO_TARGET_${host}_RUNNER=$root/scripts/as-root"
	else
		note "neither root nor sudo without a password: tests that record will be skipped"
	fi
}

# Tests run the program itself. Built together with the tests, so that every
# dependency has the same features in both and is compiled once.
build_all() {
	build_page
	note "building everything (cargo build --release --workspace --all-targets)"
	cargo build --release --locked --workspace --all-targets
}

# What ./do dist ships besides, with the same features, and put where a test runs it. Before the
# program that the tests run, which has the same name. Fathom's own crates are not optimized: the
# test makes one recording, and with other features most of them are compiled for it alone.
build_record_only() {
	local crate unoptimized=()
	build_page
	for crate in crates/*/Cargo.toml; do
		crate=$(sed -n 's/^name = "\(.*\)"$/\1/p' "$crate" | head -n 1)
		unoptimized+=(--config "profile.release.package.$crate.opt-level=0")
	done
	note "building the program that only records"
	cargo build --release --locked --workspace --bin fathom --no-default-features "${unoptimized[@]}" || return
	mkdir -p target/record-only
	cp -- target/release/fathom target/record-only/fathom
}

# The programs for the architecture that this machine is not: compiled only.
check_bpf_elsewhere() {
	local headers kernel
	headers=$(find target/release/build -path '*/out/include/bpf/bpf_helpers.h' -print -quit)
	[ -n "$headers" ] || { note "libbpf's headers are not built" && return 1; }
	for kernel in 613 602 517; do
		"${CLANG:-clang}" -g -O2 -target bpf -mcpu=v3 -Wall -Wextra -Werror \
			-Wno-unused-parameter -Wno-missing-field-initializers \
			-D__TARGET_ARCH_arm64 "-DFATHOM_KERNEL=$kernel" -I bpf -I bpf/include \
			-isystem "$(dirname -- "$headers")" -c bpf/fathom.bpf.c -o /dev/null || return
	done
}

# Passed, failed and ignored tests in the output of test programs.
count_results() {
	cat -- "$1" 2>/dev/null | awk '
		/^test result: / {
			for (i = 2; i <= NF; i++) {
				if ($i == "passed;") p += $(i - 1)
				if ($i == "failed;") f += $(i - 1)
				if ($i == "ignored;") g += $(i - 1)
			}
		}
		END { print p + 0, f + 0, g + 0 }'
}

# failed_tests LOG: the failed tests in the output of test programs, a line each: the name and the
# beginning of what it said.
failed_tests() {
	awk -v most=500 '
		function told() { if (name) print name ": " substr(said, 1, most) }
		/^---- .* stdout ----$/ { told(); name = $2; said = ""; next }
		/^failures:$/ || /^test result: / { told(); name = "" }
		name && !/^note: run with|^stack backtrace:|^$/ { said = said (said ? " / " : "") $0 }
		END { told() }' "$1" 2>/dev/null | sort -u
}

# run_tests [ARGUMENT...]: of cargo test; without any all tests that are not long.
run_tests() {
	local log long tests status=0 start=$SECONDS
	log=$(mktemp .deps/tests.XXXXXX)
	FATHOM_SKIP_LOG=$(mktemp "$root/.deps/skips.XXXXXX")
	export FATHOM_SKIP_LOG
	choose_runner
	cargo test --release --locked --workspace --no-fail-fast "$@" 2>&1 | tee "$log" || status=$?
	read -r tests_passed tests_failed tests_ignored < <(count_results "$log")
	mapfile -t tests < <(failed_tests "$log")
	failures+=("${tests[@]}")
	tests_skipped=$(grep -c '^SKIPPED: ' "$FATHOM_SKIP_LOG" || true)
	sort -u "$FATHOM_SKIP_LOG"
	long=$(grep -c '\.\.\. ignored, long$' "$log" || true)
	[ "$long" -eq 0 ] || say "SKIPPED: $long tests take long: ./do test long runs them"
	# A test that skips itself counts as passed for cargo.
	tests_passed=$((tests_passed - tests_skipped))
	if [ "$status" -ne 0 ] && [ "$tests_failed" -eq 0 ]; then
		note "FAILED: cargo test ended with status $status before all tests had run"
		failures+=("cargo test, status $status")
		tests_failed=1
	fi
	if [ "$status" -eq 0 ] && [ $((tests_passed + tests_skipped)) -eq 0 ]; then
		note "FAILED: no test ran"
		failures+=("cargo test: no test ran")
		tests_failed=1
	fi
	took "$start" "tests of Rust sources"
	rm -f -- "$log" "$FATHOM_SKIP_LOG"
}

# The last line counts checks and tests together.
all_tests() {
	run_lints
	begin_fetching_engines
	check "build of the program that only records" build_record_only
	check "build" build_all
	check "eBPF programs for arm64 compile" check_bpf_elsewhere
	check "packing" check_packing
	check "documentation site, and its links" build_site
	build_strace_programs
	run_tests
	# A quarter of `./do fuzz`, which has no other tests to wait for.
	check "damaged inputs ($((fuzz_seconds / 4)) s each kind)" run_fuzz --seconds "$((fuzz_seconds / 4))"
	test_lake
	# A few tests on each; `./do test kernels` runs more.
	kernel_basics_only=yes
	test_kernels
	run_page_tests
	conclude
}

# What all_tests leaves out.
long_tests() {
	check "build" build_all
	check "recipes of CONTRIBUTING.md" /usr/bin/python3 scripts/recipes.py "${CARGO_TARGET_DIR:-target}" "$node"
	build_strace_programs
	run_tests --test end_to_end -- --ignored
	conclude
}

# kernel_tests [NAME [FILTER...]]: the tests on other kernels alone.
kernel_tests() {
	if [ "${1:-}" = two-guests ]; then
		check "build" build_fathom
		test_two_guests
		conclude
		return
	fi
	[ $# -eq 0 ] || choose_kernel "$1"
	if [ "$architecture" = arm64 ]; then
		setup_arm64
	else
		check "build" build_all
	fi
	test_kernels "$@"
	conclude
}

# How long the parts took, what failed, and as the last line how many.
conclude() {
	local failed=$((checks_failed + tests_failed))
	[ ${#times[@]} -eq 0 ] || printf '%s\n' "${times[@]}"
	[ ${#failures[@]} -eq 0 ] || printf 'FAILED: %s\n' "${failures[@]}"
	say "$((checks_passed + tests_passed)) passed, $failed failed, $((tests_ignored + tests_skipped)) skipped"
	[ "$failed" -eq 0 ] || exit 1
}
