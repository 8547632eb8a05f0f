redis-server redis.conf & P=$!
until redis-cli -s redis.sock ping > /dev/null 2>&1; do sleep 0.1; done
redis-cli -s redis.sock debug populate 400000 session 300 > /dev/null
( for n in 1 2 3; do sleep 0.7; redis-cli -s redis.sock ${SAVE:-save} > /dev/null; done ) & C=$!
# what the site does meanwhile, on one connection
/usr/bin/python3 client.py
wait $C
kill $P
wait $P
exit 0
