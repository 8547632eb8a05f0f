#!/usr/bin/env bash
# What --detail and --content cost fio and dd on cached files: throughput as a
# share of that without tracing. In each round every mode runs once, after an
# untraced run of its own; shown are medians over the rounds. Needs root, fio, and
# a release build (./do build).
#
#   benches/content_cost.sh [ROUNDS] [SECONDS] [DIR]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rounds=${1:-7}
seconds=${2:-2}
dir=$(mktemp -d "${3:-/dev/shm}/fathom-content.XXXXXX")
sessions=$(mktemp -d "${TMPDIR:-/tmp}/fathom-content.XXXXXX")
trap 'rm -rf "$dir" "$sessions"' EXIT
fathom=$PWD/target/release/fathom

modes=(
    "raw|--detail raw"
    "fds|--detail fds"
    "full|--detail full"
    "hash, kernel|--content hash"
    "hash, user|--content hash --hash-in user"
    "plain|--content plain"
)
loads=(
    "randread 4K|randread|4k"
    "randwrite 4K|randwrite|4k"
    "randrw 4K|randrw|4k"
    "read 64K|read|64k"
    "write 64K|write|64k"
    "dd 64K|dd|64k"
)

# Throughput of one run of LOAD BLOCK under the command that follows.
run() {
    local load=$1 block=$2
    shift 2
    if [[ $load == dd ]]; then
        # dd's last line: BYTES bytes (...) copied, SECONDS s, RATE.
        "$@" dd if="$dir/data" of="$dir/copy" bs="$block" count=$((1024)) \
            iflag=fullblock conv=notrunc 2>&1 >/dev/null |
            awk '/copied/ { for (i = 1; i <= NF; i++) if ($i == "copied,") print $1 / $(i + 1) }'
    else
        # Terse: fields 7 and 48 are KiB/s read and written.
        "$@" fio --name=j --filename="$dir/data" --rw="$load" --bs="$block" --size=64m \
            --ioengine=psync --time_based --runtime="$seconds" --fallocate=none \
            --output-format=terse --terse-version=3 2>/dev/null |
            awk -F';' 'NF > 48 { print $7 + $48 }'
    fi
}

head -c 64M /dev/urandom >"$dir/data"
cp "$dir/data" "$dir/copy"
for load in "${loads[@]}"; do
    IFS='|' read -r name rw block <<<"$load"
    : >"$sessions/ratios"
    for ((round = 0; round < rounds; round++)); do
        for mode in "${modes[@]}"; do
            IFS='|' read -r label options <<<"$mode"
            none=$(run "$rw" "$block")
            # shellcheck disable=SC2086 # options are words
            traced=$(run "$rw" "$block" "$fathom" record --quiet --force -o "$sessions/s.fathom" \
                $options --)
            lost=$("$fathom" query "$sessions/s.fathom" --format csv \
                "SELECT coalesce(sum(count), 0) FROM losses" | tail -n 1)
            echo "$label|$none|$traced|$lost" >>"$sessions/ratios"
        done
    done
    printf '%s\n' "$name"
    for mode in "${modes[@]}"; do
        label=${mode%%|*}
        awk -F'|' -v label="$label" '$1 == label { print $3 / $2, $4 }' "$sessions/ratios" |
            sort -n | awk -v label="$label" '
                { ratio[NR] = $1; lost += $2 }
                END { printf "  %-14s %.3f  (%.3f to %.3f, %d lost)\n", label,
                    ratio[int((NR + 1) / 2)], ratio[1], ratio[NR], lost }'
    done
done
