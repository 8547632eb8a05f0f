# a new alias as the panel adds it
for n in $(seq 150); do
  { cdb -d aliases.cdb | sed '/^$/d'; printf '+8,9:alias%03d->box%06d\n\n' $n $n; } | cdb -c -t aliases.tmp aliases.cdb || exit 1
done
cdb -s aliases.cdb | head -n 1
