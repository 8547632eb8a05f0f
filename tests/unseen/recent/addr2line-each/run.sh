# names the samples of a profile
while read -r address; do
  addr2line -f -e engine "0x$address" | head -n 1
done < addresses > names
wc -l names
