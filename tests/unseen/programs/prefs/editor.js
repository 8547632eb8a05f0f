// Editor session: preferences and open documents are kept in session.json.
const fs = require('fs');
const session = { theme: 'dark', font: 14, docs: [] };
for (let i = 0; i < 120; i++) session.docs.push({ path: `/home/u/doc${i}.md`, cursor: 0, folds: [] });

function save() {
  fs.writeFileSync('session.json', JSON.stringify(session, null, 2));
}
let step = 0;
function edit() {
  const d = session.docs[(step * 17) % session.docs.length];
  d.cursor += step % 91;
  d.folds.push(step);
  save();
  if (++step < 150) setTimeout(edit, 5);
}
edit();
