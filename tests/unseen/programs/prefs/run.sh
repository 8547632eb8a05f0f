exec node editor.js
