# A store that makes its log durable every second.
# needs: redis-server redis-cli
case $1 in
setup) ;;
run)
    redis-server --port 0 --unixsocket "$PWD/s" --dir "$PWD" --appendonly yes --appendfsync everysec --save '' --daemonize no > log &
    for _ in $(seq 100); do redis-cli -s "$PWD/s" ping > /dev/null 2>&1 && break || sleep 0.05; done
    for i in $(seq 3000); do echo "SET key$i value$i"; done | redis-cli -s "$PWD/s" --pipe > /dev/null
    sleep 1.5
    redis-cli -s "$PWD/s" shutdown nosave || :
    wait
    ;;
esac
