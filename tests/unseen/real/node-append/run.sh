node -e '
const fs = require("fs");
for (let i = 0; i < 80000; i++) fs.appendFileSync("app.log", `request ${i} answered with status 200\n`);
'
