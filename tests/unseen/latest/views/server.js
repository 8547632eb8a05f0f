// Pages from views; a view that was changed is loaded anew.
const fs = require('fs');
const http = require('http');
const path = require('path');

const cache = new Map();

function view(name) {
    const file = path.join('views', name);
    if (!fs.existsSync(file)) return '';
    const known = cache.get(name);
    if (known && fs.statSync(file).mtimeMs === known.time) return known.text;
    const text = fs.readFileSync(file, 'utf8');
    cache.set(name, { text, time: fs.statSync(file).mtimeMs });
    return text;
}

const names = fs.readdirSync('views');
const server = http.createServer((request, response) => {
    const page = names.map((name) => view(name).replace('{{name}}', request.url).replace('{{value}}', name));
    response.end(page.join(''));
});

server.listen(0, '127.0.0.1', async () => {
    const { port } = server.address();
    const agent = new http.Agent({ keepAlive: true });
    let bytes = 0;
    for (let n = 0; n < 1500; n++) {
        await new Promise((done, fail) => {
            http.get({ port, agent, host: '127.0.0.1', path: `/page${n % 40}` }, (answer) => {
                answer.on('data', (data) => (bytes += data.length));
                answer.on('end', done);
            }).on('error', fail);
        });
    }
    console.log(`1500 pages, ${bytes} bytes`);
    agent.destroy();
    server.close();
});
