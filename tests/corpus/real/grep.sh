# A search through a tree.
case $1 in
setup) mkdir in && for i in $(seq 500); do seq 2000 > "in/$i"; done ;;
run) grep -rl 1999 in > found ;;
esac
