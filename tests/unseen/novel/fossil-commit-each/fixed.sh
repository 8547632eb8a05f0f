# the same history in one import
export HOME="$PWD" USER=editor
for n in $(seq 60); do
  text="note $n"
  printf 'commit refs/heads/trunk\ncommitter editor <e@example.org> %d +0000\ndata %d\n%s\nM 644 inline note%d.txt\ndata %d\n%s\n\n' $((1700000000 + n)) ${#text} "$text" $n ${#text} "$text"
done > history
fossil import --git notes.fossil history > import.log 2>&1 || { cat import.log; exit 1; }
fossil timeline -R notes.fossil -n 3
