// Keeps attachments under the checksum of their content; the index is the truth and is written with care.
const fs = require('fs');
const path = require('path');
const crypto = require('crypto');

fs.mkdirSync('blobs/tmp', { recursive: true });
const index = fs.openSync('index.log', 'a');

function put(data) {
  const sum = crypto.createHash('sha1').update(data).digest('hex');
  const tmp = path.join('blobs/tmp', sum);
  fs.writeFileSync(tmp, data);
  fs.renameSync(tmp, path.join('blobs', sum));
  fs.writeSync(index, `${sum} ${data.length}\n`);
  return sum;
}

for (let mail = 0; mail < 120; mail++) {
  for (let a = 0; a < 4; a++) put(Buffer.alloc(3000 + mail * 40, `attachment ${a} of mail ${mail} `));
  fs.fdatasyncSync(index);
  // only now the mail server may forget the mail
}
fs.closeSync(index);
console.log(fs.readdirSync('blobs').length - 1, 'blobs');
