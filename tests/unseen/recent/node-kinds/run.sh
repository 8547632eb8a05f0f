exec node kinds.js
