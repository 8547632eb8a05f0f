# all of them beside the old ones, one sync, then the renames
for f in inventory/*.json; do sed 's/"hours": \([0-9]*\)00}/"hours": \1}/' "$f" > "$f.new" || exit 1; done
sync inventory/*.new
for f in inventory/*.json; do mv "$f.new" "$f"; done
sync inventory
echo edited
