node job.js a & A=$!
node job.js b & B=$!
wait $A || exit 1
wait $B
