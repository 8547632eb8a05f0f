mkdir src
i=0; while [ $i -lt 1200 ]; do mkdir -p src/p$((i % 40)); seq $i $((i + 900)) > src/p$((i % 40))/m$i.txt; i=$((i + 1)); done
head -c 60000000 /dev/urandom > src/assets.bin
zip -q -1 -r src.zip src && rm -r src
