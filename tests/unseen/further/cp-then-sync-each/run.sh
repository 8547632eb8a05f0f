# to a stick, and make sure of each
for f in music/*.ogg; do
  cp "$f" stick/
  sync
done
ls stick | wc -l
