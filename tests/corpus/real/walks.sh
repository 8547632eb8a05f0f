# Programs whose work is names and attributes.
case $1 in
setup) for d in $(seq 20); do mkdir -p "tree/$d" && for i in $(seq 100); do : > "tree/$d/$i"; done; done ;;
run)
    du -s tree > size
    ls -lR tree > list
    chmod -R go-w tree
    ;;
esac
