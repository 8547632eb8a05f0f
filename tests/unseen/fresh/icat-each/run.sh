mkdir out
# file names with their inodes, then the contents of each
fls -r -F -p disk.img | sed -n 's/^r\/r \([0-9]*\):\t\(.*\)/\1 \2/p' > list
while read inode name; do
    icat disk.img $inode > out/${name##*/} || exit 1
done < list
ls out | wc -l
[ $(ls out | wc -l) -ge 250 ]
