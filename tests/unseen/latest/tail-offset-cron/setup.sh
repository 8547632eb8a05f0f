mkdir -p sent
echo 0 > offset
seq 1 4000 | sed 's/.*/& GET \/index.html 200/' > access.log
