exec node copy.js
