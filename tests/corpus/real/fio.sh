# A measurement with large pieces in order.
# needs: fio
case $1 in
setup) ;;
run)
    fio --output=/dev/null --name=write --rw=write --bs=256k --size=64M --end_fsync=1
    fio --output=/dev/null --name=read --filename=write.0.0 --rw=read --bs=256k --size=64M
    ;;
esac
