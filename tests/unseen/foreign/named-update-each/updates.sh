echo "server 127.0.0.1 15353"
echo "zone dyn.test"
seq 1 2000 | awk '{ printf "update add host%d.dyn.test 300 A 10.0.%d.%d\nsend\n", $1, $1 / 250, $1 % 250 }'
