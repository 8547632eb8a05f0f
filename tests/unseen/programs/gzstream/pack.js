// Compresses finished logs and removes the originals when the compressed ones are safe.
const fs = require('fs');
const zlib = require('zlib');
const path = require('path');
const { pipeline } = require('stream/promises');

async function main() {
  fs.mkdirSync('packed', { recursive: true });
  const names = fs.readdirSync('logs');
  for (const name of names) {
    const tmp = path.join('packed', name + '.gz.tmp');
    await pipeline(
      fs.createReadStream(path.join('logs', name), { highWaterMark: 256 * 1024 }),
      zlib.createGzip({ level: 1, chunkSize: 256 * 1024 }),
      fs.createWriteStream(tmp));
    const fd = fs.openSync(tmp, 'r+');
    fs.fsyncSync(fd);
    fs.closeSync(fd);
    fs.renameSync(tmp, path.join('packed', name + '.gz'));
  }
  const dir = fs.openSync('packed', 'r');
  fs.fsyncSync(dir);
  fs.closeSync(dir);
  const top = fs.openSync('.', 'r');
  fs.fsyncSync(top);
  fs.closeSync(top);
  for (const name of names) fs.unlinkSync(path.join('logs', name));
}
main().catch((e) => { console.error(e); process.exit(1); });
