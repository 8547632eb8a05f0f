exec node server.js
