mkdir site
for n in $(seq 600); do head -c 12000 /dev/urandom | base64 > site/page$n.html; done
tar czf site.tar.gz site
rm -r site
for n in $(seq 1 15 600); do echo site/page$n.html; done > wanted
