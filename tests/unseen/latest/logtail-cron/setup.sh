mkdir sent
seq 1 200000 | sed 's/.*/& GET \/index.html 200/' > access.log
