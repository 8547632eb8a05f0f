export PATH=/usr/bin:/bin
export HOME=$PWD BRZ_EMAIL=me@example.com
cd tree
brz add -q . && brz commit -q -m "the whole book" && brz revno
