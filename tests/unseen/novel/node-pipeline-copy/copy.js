// takes the uploads to the directory of the archive
const fs = require('fs')
const { pipeline } = require('stream/promises')

async function main () {
  fs.mkdirSync('archive')
  for (const name of fs.readdirSync('media')) {
    if (process.argv[2]) await fs.promises.copyFile('media/' + name, 'archive/' + name)
    else await pipeline(fs.createReadStream('media/' + name), fs.createWriteStream('archive/' + name))
  }
  console.log(fs.readdirSync('archive').length)
}
main()
