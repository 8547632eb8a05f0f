export BUP_DIR=$PWD/store
bup index home 2> /dev/null || exit 1
bup save -q -n home home || exit 1
# a day later
printf 'a line more\n' >> home/file7
bup index home 2> /dev/null && bup save -q -n home home
