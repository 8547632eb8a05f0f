exec node ship.js
