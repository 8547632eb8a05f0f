ulimit -n 1024
exec node poll.js
