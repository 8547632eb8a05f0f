// Adds its part to the shared index; a lock file keeps the jobs apart.
const fs = require('fs');

function locked(work) {
  for (;;) {
    try {
      fs.closeSync(fs.openSync('index.lock', 'wx'));
      break;
    } catch (e) {
      if (e.code !== 'EEXIST') throw e;
    }
  }
  try { work(); } finally { fs.unlinkSync('index.lock'); }
}

const me = process.argv[2];
for (let n = 0; n < 4; n++) {
  locked(() => {
    // the index is built anew by a helper
    const words = Array.from({ length: 200000 }, (_, i) => `${me}-${(i * 7919) % 99991}`).sort();
    fs.writeFileSync(`index.${me}.${n}`, words.join('\n'));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
  });
}
