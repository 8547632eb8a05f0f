# A copy of a tree, and another one that finds nothing to do.
# needs: rsync
case $1 in
setup) mkdir in && for i in $(seq 300); do seq 800 > "in/$i"; done ;;
run)
    rsync -a in/ out/
    rsync -a in/ out/
    ;;
esac
