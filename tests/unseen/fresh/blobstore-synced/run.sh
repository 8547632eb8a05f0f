exec node store.js
