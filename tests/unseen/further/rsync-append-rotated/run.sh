# the logs are collected once a minute, and only what was added is sent
collect() { rsync -a --append logs/ copy/; }
awk 'BEGIN { for (n = 0; n < 90000; n++) printf "old %07d GET /new/%d 200\n", n, n % 977 }' >> logs/access.log
collect
mv logs/access.log access.log.1
awk 'BEGIN { for (n = 0; n < 700000; n++) printf "new %07d GET /item/%d 200\n", n, n % 977 }' > logs/access.log
collect
cmp -s logs/access.log copy/access.log && echo same || echo different
exit 0
