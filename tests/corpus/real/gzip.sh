# Packing and unpacking.
# needs: gzip
case $1 in
setup) seq 2000000 > in ;;
run)
    gzip -k in
    gzip -t in.gz
    ;;
esac
