seq 1 900 | awk '{ printf "member%04d secret%d\n", $1, $1 * 7919 }' > members
: > users
