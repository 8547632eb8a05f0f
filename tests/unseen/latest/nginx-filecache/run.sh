nginx -e $PWD/error.log -c $PWD/nginx.conf &
P=$!
until curl -s -o /dev/null http://127.0.0.1:18721/none; do sleep 0.05; done
get() { curl -s "http://127.0.0.1:18721/prices.json?n=[1-150]" | md5sum; }
get
# the new prices of the day
head -c 300k /dev/urandom | base64 > www/prices.new
sync www/prices.new
mv www/prices.new www/prices.json
sync www
for n in 1 2 3 4 5 6 7 8; do
    sleep 0.25
    get
done
kill -TERM $P
wait $P
