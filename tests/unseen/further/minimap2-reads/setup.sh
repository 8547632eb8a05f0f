awk 'BEGIN { srand(5); split("A C G T", b, " "); print ">chr1"; for (l = 0; l < 60000; l++) { x = ""; for (i = 0; i < 60; i++) x = x b[int(rand() * 4) + 1]; print x } }' > ref.fa
awk '!/^>/ { buf = buf $0; if (++c % 20 == 0) { print "@r" c; print buf; print "+"; gsub(/./, "I", buf); print buf; buf = "" } }' ref.fa > reads.fq
