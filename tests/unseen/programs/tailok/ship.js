// Ships the lines of app.log to shipped.log and follows it when the application renames it.
const fs = require('fs');
const { spawn } = require('child_process');

const app = spawn('perl', ['app.pl'], { stdio: 'inherit' });
const out = fs.createWriteStream('shipped.log');
const buf = Buffer.alloc(256 * 1024);
let fd = -1, inode = 0, done = false;
app.on('exit', () => { done = true; });

function drain() {
  let n;
  while (fd >= 0 && (n = fs.readSync(fd, buf, 0, buf.length, null)) > 0) out.write(Buffer.from(buf.subarray(0, n)));
}
function poll() {
  const last = done;
  drain();
  let st = null;
  try { st = fs.statSync('app.log'); } catch (e) { if (e.code !== 'ENOENT') throw e; }
  if (st && st.ino !== inode) {
    drain();                       // what the old one got until its end
    if (fd >= 0) fs.closeSync(fd);
    fd = fs.openSync('app.log', 'r');
    inode = fs.fstatSync(fd).ino;
    drain();
  }
  if (last) { fs.closeSync(fd); out.end(); } else setTimeout(poll, 25);
}
poll();
