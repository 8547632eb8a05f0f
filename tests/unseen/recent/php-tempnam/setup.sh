mkdir uploads tmp
for n in $(seq 350); do head -c 200000 /dev/urandom > uploads/$n.raw; done
