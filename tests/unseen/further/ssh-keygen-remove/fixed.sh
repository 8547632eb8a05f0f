drop() { for n in $(seq $1 2 120); do flock known_hosts.lock ssh-keygen -q -R host$n.example.org -f known_hosts > /dev/null 2>&1; done; }
drop 1 & A=$!
drop 2 & B=$!
wait $A $B
echo "keys of 2880 hosts should remain: $(wc -l < known_hosts)"
