NODE_PATH=/usr/share/nodejs exec node visits.js once
