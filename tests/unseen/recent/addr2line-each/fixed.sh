addr2line -f -e engine < addresses | awk 'NR % 2' > names
wc -l names
