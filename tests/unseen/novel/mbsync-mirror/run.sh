mbsync -q -c mbsyncrc mirror || exit 1
find copy -type f | wc -l
