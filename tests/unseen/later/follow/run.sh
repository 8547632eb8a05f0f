exec node follow.js
