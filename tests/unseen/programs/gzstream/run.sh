exec node pack.js
