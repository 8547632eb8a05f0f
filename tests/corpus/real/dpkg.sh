# What is installed.
# needs: dpkg
case $1 in
setup) ;;
run)
    dpkg -l > list
    dpkg -L dpkg > files
    ;;
esac
