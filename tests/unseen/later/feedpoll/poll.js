// Looks through the inbox of feeds and indexes those that changed since the last run.
const fs = require('fs');
const path = require('path');

const INBOX = 'inbox';
const seen = JSON.parse(fs.readFileSync('seen.json', 'utf8'));
const index = [];
let failed = 0;

function header(fd) {
  const buf = Buffer.alloc(256);
  const n = fs.readSync(fd, buf, 0, buf.length, 0);
  const fields = {};
  for (const line of buf.toString('utf8', 0, n).split('\n')) {
    const [key, value] = line.split(': ');
    if (!value) break;
    fields[key] = value;
  }
  return fields;
}

function body(fd) {
  const size = fs.fstatSync(fd).size;
  const buf = Buffer.alloc(size);
  let n = 0;
  while (n < size) n += fs.readSync(fd, buf, n, size - n, n);
  return buf;
}

function look(name) {
  const fd = fs.openSync(path.join(INBOX, name), 'r');
  const h = header(fd);
  if (seen[name] === h.etag) return; // nothing new
  const text = body(fd);
  index.push({ name, etag: h.etag, words: text.toString().split(/\s+/).length });
  fs.closeSync(fd);
}

const names = fs.readdirSync(INBOX).sort();
const out = fs.openSync('index.json', 'w');
for (const name of names) {
  try {
    look(name);
  } catch (e) {
    failed++;
    if (failed < 4) console.error(String(e));
  }
}
fs.writeSync(out, JSON.stringify(index));
fs.closeSync(out);
console.log(`${names.length} feeds, ${index.length} indexed, ${failed} failed`);
