# Copies of a large file and of a directory.
case $1 in
setup)
    head -c 64M /dev/urandom > large
    mkdir in && for i in $(seq 300); do seq 300 > "in/$i"; done
    ;;
run)
    cp large large.copy
    cp -r in out
    ;;
esac
