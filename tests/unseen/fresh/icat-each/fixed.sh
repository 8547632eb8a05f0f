tsk_recover -a disk.img out || exit 1
[ $(find out -type f | wc -l) -ge 250 ]
