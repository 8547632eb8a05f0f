// Packs the logs of closed days.
const fs = require('fs');
const path = require('path');
const zlib = require('zlib');
const { pipeline } = require('stream/promises');

async function fsync(name) {
    const file = await fs.promises.open(name, 'r');
    await file.sync();
    await file.close();
}

async function pack(log) {
    const part = log + '.gz.part';
    const out = await fs.promises.open(part, 'wx');
    const options = { highWaterMark: 1 << 20 };
    await pipeline(
        fs.createReadStream(log, options),
        zlib.createGzip({ level: 1, chunkSize: 1 << 18 }),
        async function (packed) {
            for await (const data of packed) await out.writeFile(data);
        },
    );
    await out.sync();
    await out.close();
    await fs.promises.rename(part, log + '.gz');
}

(async () => {
    const logs = fs.readdirSync('logs').map((name) => path.join('logs', name));
    for (const log of logs) await pack(log);
    await fsync('logs');
    for (const log of logs) await fs.promises.unlink(log);
    await fsync('logs');
    console.log(`${logs.length} logs packed`);
})();
