# A sort that is larger than its memory.
case $1 in
setup) seq 800000 | awk '{ print ($1 * 7919) % 1000003 }' > in ;;
run) sort -S 2M -T . in -o out ;;
esac
