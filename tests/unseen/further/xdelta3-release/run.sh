xdelta3 -e -1 -S none -s v1.img v2.img v1-v2.xd3 || exit 1
xdelta3 -d -s v1.img v1-v2.xd3 v2.out || exit 1
cmp v2.img v2.out
