# A walk over a tree.
case $1 in
setup) for d in $(seq 40); do mkdir -p "tree/$d" && for i in $(seq 40); do : > "tree/$d/$i"; done; done ;;
run) find tree -name '*7' -newer tree/1/1 ;;
esac
