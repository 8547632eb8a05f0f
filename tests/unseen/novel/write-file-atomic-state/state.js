// the position of a reader of a stream, kept after each batch
const write = require('write-file-atomic')

async function main () {
  const state = { offsets: {} }
  for (let n = 0; n < 1000; n++) {
    state.offsets['partition' + n % 16] = n
    if (process.argv[2] === 'each' || n % 50 === 49) await write('state.json', JSON.stringify(state))
  }
}
main()
