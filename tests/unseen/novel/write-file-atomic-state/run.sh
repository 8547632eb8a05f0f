NODE_PATH=/usr/share/nodejs exec node state.js each
