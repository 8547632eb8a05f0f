minimap2 -t 2 -a ref.fa reads.fq > out.sam 2> /dev/null || exit 1
grep -vc '^@' out.sam
