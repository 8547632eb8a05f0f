cat > redis.conf <<C
port 0
unixsocket redis.sock
dir .
save ""
appendonly no
daemonize no
logfile redis.log
enable-debug-command yes
C
