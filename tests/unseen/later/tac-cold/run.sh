# the newest entries first
tac access.log | awk '{ n += length($0) } END { print NR, n }'
