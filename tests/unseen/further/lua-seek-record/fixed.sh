exec /usr/bin/lua5.4 lookup.lua memory
