mkdir docs
awk 'BEGIN { srand(7); for (d = 0; d < 3000; d++) { f = "docs/d" d ".txt"; for (l = 0; l < 25; l++) { s = ""; for (w = 0; w < 12; w++) s = s " w" int(exp(rand() * 9)); print s > f } close(f) } }' 
