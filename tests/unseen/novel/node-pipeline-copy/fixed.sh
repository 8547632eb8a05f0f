exec node copy.js whole
