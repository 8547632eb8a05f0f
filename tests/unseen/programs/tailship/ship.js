// Ships the lines of app.log to shipped.log; the application rotates its log by renaming it.
const fs = require('fs');
const { spawn } = require('child_process');

const app = spawn('perl', ['app.pl'], { stdio: 'inherit' });
const out = fs.createWriteStream('shipped.log');
let offset = 0;
let done = false;
app.on('exit', () => { done = true; });

function poll() {
  let fd;
  try { fd = fs.openSync('app.log', 'r'); } catch (e) { if (!done) return void setTimeout(poll, 20); throw e; }
  const size = fs.fstatSync(fd).size;
  if (size > offset) {
    const buf = Buffer.alloc(size - offset);
    const n = fs.readSync(fd, buf, 0, buf.length, offset);
    offset += n;
    out.write(buf.subarray(0, n));
  }
  fs.closeSync(fd);
  if (done) out.end(); else setTimeout(poll, 20);
}
poll();
