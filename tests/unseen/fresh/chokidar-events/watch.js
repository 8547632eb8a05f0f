// Renders a page again when its source changes.
const fs = require('fs');
const path = require('path');
const chokidar = require('chokidar');

fs.mkdirSync('public', { recursive: true });
let rendered = 0;

const watcher = chokidar.watch('site', { ignoreInitial: true });
watcher.on('change', file => {
  const text = fs.readFileSync(file, 'utf8');
  fs.writeFileSync(path.join('public', path.basename(file) + '.html'), `<p>${text}</p>`);
  rendered++;
});
watcher.on('ready', () => {
  let n = 0;
  const writer = setInterval(() => {
    n++;
    fs.appendFileSync(`site/part${n * 7}/page${n}.md`, 'one more line\n');
    if (n === 4) {
      clearInterval(writer);
      setTimeout(() => { watcher.close(); console.log(rendered, 'rendered'); process.exit(rendered ? 0 : 1); }, 1000);
    }
  }, 700);
});
