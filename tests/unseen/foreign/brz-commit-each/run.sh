export PATH=/usr/bin:/bin
export HOME=$PWD BRZ_EMAIL=me@example.com
cd tree
for f in chapter*.txt; do
    brz add -q $f && brz commit -q -m "add $f" $f || exit 1
done
brz revno
