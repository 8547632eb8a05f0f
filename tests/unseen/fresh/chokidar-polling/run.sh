export NODE_PATH=/usr/share/nodejs
exec node watch.js
