# A package manager that only looks.
# needs: apt-get
case $1 in
setup) ;;
run) apt-get -s install tar > log || : ;;
esac
