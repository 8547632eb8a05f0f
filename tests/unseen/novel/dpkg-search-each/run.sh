# which packages own the files that a program opened
while read -r f; do
  dpkg-query --admindir=admin -S "$f" || exit 1
done < files > owners
wc -l owners
