set -e
svnadmin create old
svn mkdir -q -m layout "file://$PWD/old/trunk"
svn checkout -q "file://$PWD/old/trunk" wc
cd wc
i=0
while [ $i -lt 40 ]; do seq $i $((i + 60)) > file$i.txt; i=$((i + 1)); done
svn add -q file*.txt
svn commit -q -m import
i=0
while [ $i -lt 250 ]; do
    echo "change $i" >> file$((i % 40)).txt
    svn commit -q -m "change $i"
    i=$((i + 1))
done
cd ..
svnadmin dump -q old > project.dump
rm -rf old wc
