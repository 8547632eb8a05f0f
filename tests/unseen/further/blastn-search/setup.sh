awk 'BEGIN { srand(3); split("A C G T", b, " "); for (s = 0; s < 400; s++) { print ">seq" s; for (l = 0; l < 500; l++) { x = ""; for (i = 0; i < 60; i++) x = x b[int(rand() * 4) + 1]; print x } } }' > genome.fa
awk '/^>/ { n++ } n % 4 == 0 && !/^>/ && ++c % 40 == 5 { print ">q" c; print }' genome.fa > queries.fa
