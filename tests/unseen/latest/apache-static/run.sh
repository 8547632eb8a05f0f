apache2 -f $PWD/httpd.conf -DFOREGROUND &
P=$!
until curl -s -o /dev/null http://127.0.0.1:18712/none; do sleep 0.05; done
u=http://127.0.0.1:18712/shop/2024/spring/catalog/garden/tools/hand/steel/pictures/small
for n in 1 2 3 4 5 6; do
    ab -q -k -c 2 -n 8000 $u/p$n.gif | grep 'Requests per second'
done
kill -TERM $P
wait $P
