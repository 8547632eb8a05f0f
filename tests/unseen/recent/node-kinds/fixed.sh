sed -e "s/ return 'short';/ { fs.closeSync(fd); return 'short'; }/" -e "s/else return 'unknown';/else kind = 'unknown';/" kinds.js > closed.js
exec node closed.js
