mkdir log
echo s8000000 > log/config
seq 1 800000 | awk '{ printf "request %d answered with status %d in %d ms\n", $1, $1 % 7 ? 200 : 404, $1 * 7919 % 900 }' > requests
