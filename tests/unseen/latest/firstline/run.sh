ulimit -n 1024
exec lua5.4 tickets.lua
