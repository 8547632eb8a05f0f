// Follows a log and counts the errors by service; woken by the kernel when something was appended.
const fs = require('fs');

const LOG = 'app.log';
const LINES = 6000;

class Follower {
  constructor(path) {
    this.fd = fs.openSync(path, 'r');
    this.at = 0;
    this.rest = '';
    this.lines = 0;
    this.errors = new Map();
    this.buf = Buffer.alloc(64 * 1024);
  }

  take() {
    for (;;) {
      const n = fs.readSync(this.fd, this.buf, 0, this.buf.length, this.at);
      if (n === 0) return;
      this.at += n;
      const lines = (this.rest + this.buf.toString('latin1', 0, n)).split('\n');
      this.rest = lines.pop();
      for (const line of lines) {
        this.lines++;
        const m = /^(\S+) ERROR/.exec(line);
        if (m) this.errors.set(m[1], (this.errors.get(m[1]) || 0) + 1);
      }
      if (n < this.buf.length) return;
    }
  }
}

function application() {
  const out = fs.openSync(LOG, 'a');
  let i = 0;
  const timer = setInterval(() => {
    let block = '';
    for (let end = i + 300; i < end; i++) block += `service${i % 7} ${i % 11 ? 'INFO' : 'ERROR'} request ${i}\n`;
    fs.writeSync(out, block);
    if (i >= LINES) clearInterval(timer);
  }, 50);
}

fs.writeFileSync(LOG, '');
const follower = new Follower(LOG);
const watcher = fs.watch(LOG, () => {
  follower.take();
  if (follower.lines === LINES) {
    watcher.close();
    console.log(follower.lines, 'lines', JSON.stringify([...follower.errors]));
  }
});
application();
