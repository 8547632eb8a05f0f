// Sums the amounts of a CSV that another program pipes in.
const fs = require('fs');

function input() {
  if (process.argv[2] === 'all') return fs.readFileSync(0, 'utf8');
  const buffer = Buffer.alloc(8 << 20);          // "8 MB are enough"
  return buffer.toString('utf8', 0, fs.readSync(0, buffer, 0, buffer.length, null));
}

let total = 0, rows = 0;
for (const line of input().split('\n')) {
  const amount = Number(line.split(',')[2]);
  if (amount) { total += amount; rows++; }
}
console.log(rows, 'rows', total);
