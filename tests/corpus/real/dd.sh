# A copy in pieces of a megabyte that ends with a sync.
case $1 in
setup) head -c 32M /dev/urandom > in ;;
run) dd if=in of=out bs=1M conv=fsync 2> /dev/null ;;
esac
