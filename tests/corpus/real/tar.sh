# An archive of many files, made and unpacked.
# needs: tar
case $1 in
setup) mkdir in && for i in $(seq 500); do seq 500 > "in/$i"; done ;;
run)
    tar cf all.tar in
    mkdir out
    tar xf all.tar -C out
    ;;
esac
