echo "server 127.0.0.1 15353"
echo "zone dyn.test"
seq 1 60000 | awk '{ printf "update add host%d.dyn.test 300 A 10.%d.%d.%d\n", $1, $1 / 62500, $1 / 250 % 250, $1 % 250 } $1 % 500 == 0 { print "send" }'
