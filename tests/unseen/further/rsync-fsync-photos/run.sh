# the card is erased afterwards, so each photo has to be on the disk
rsync -a --fsync --whole-file photos/ archive/ || exit 1
sync archive
ls archive | wc -l
