seq 30000 | shuf --random-source=/bin/sh > input.txt
