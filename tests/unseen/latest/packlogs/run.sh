exec node packlogs.js
