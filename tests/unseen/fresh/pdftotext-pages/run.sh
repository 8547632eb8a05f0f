mkdir pages
n=1
while [ $n -le 400 ]; do
    pdftotext -f $n -l $n -layout manual.pdf pages/$n.txt || exit 1
    n=$((n + 1))
done
cat pages/*.txt | wc
