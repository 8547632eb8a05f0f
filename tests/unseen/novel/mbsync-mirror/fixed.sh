# one sync for all mails
{ echo 'FSync no'; echo; cat mbsyncrc; } > rc
mbsync -q -c rc mirror || exit 1
sync -f copy
find copy -type f | wc -l
