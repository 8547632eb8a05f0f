// Remembers the position of the reader in each book.
const Configstore = require('configstore');

const store = new Configstore('reader', {}, { configPath: 'reader.json' });
const books = {};
for (let n = 0; n < 500; n++) books[`book${n}`] = { page: 0, title: `The story number ${n}`, notes: [] };
store.set('books', books);
for (let n = 0; n < 900; n++) {
  if (process.argv[2]) books[`book${n * 37 % 500}`].page = n;
  else store.set(`books.book${n * 37 % 500}.page`, n);
}
if (process.argv[2]) store.set('books', books);
