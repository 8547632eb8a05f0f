syslog-ng -F -f ng.conf -p ng.pid -c ng.ctl -R ng.persist & P=$!
until [ -S log.sock ]; do sleep 0.1; done
loggen --unix --dgram --rate 1000000 --interval 60 --number 60000 --size 160 log.sock > /dev/null 2>&1
sleep 0.5
kill $P
wait $P
wc -l < all.log
