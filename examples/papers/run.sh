#!/usr/bin/env bash
# All tables and figures of a paper, one after another: the scripts in its directory, and the
# examples that show its other figures.
#
#   examples/papers/run.sh dio|eziotracer|ioscope|relaytracer|multilevel [--quick] [DIR ON A DEVICE]
set -euo pipefail
papers=$(dirname -- "$(readlink -f -- "$0")")
examples=$(dirname -- "$papers")
paper=${1:-}
case $paper in
dio) others=(redis-log opensearch log-shipper lsm-compaction) ;;
eziotracer) others=(thread-contention) ;;
ioscope) others=(scan-order) ;;
relaytracer) others=(request-breakdown) ;;
multilevel) others=(slow-requests) ;;
*)
	echo "usage: $0 dio|eziotracer|ioscope|relaytracer|multilevel [--quick] [DIR ON A DEVICE]" >&2
	exit 2
	;;
esac
shift
failed=()
scripts=("$papers/$paper"/*.sh)
for other in "${others[@]}"; do scripts+=("$examples/$other/run.sh"); done
for script in "${scripts[@]}"; do
	printf '\n# %s\n' "${script#"$examples/"}"
	if [ "${script##*/}" = fluent_bit.sh ] && [ -z "${FLUENT_BIT:-}" ] && ! command -v fluent-bit >/dev/null; then
		echo "not run: FLUENT_BIT is not set, and PATH has no fluent-bit"
		continue
	fi
	"$script" "$@" || failed+=("$script")
done
[ "${#failed[@]}" -eq 0 ] || {
	printf 'failed: %s\n' "${failed[@]}" >&2
	exit 1
}
