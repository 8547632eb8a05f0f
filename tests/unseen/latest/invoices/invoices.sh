# makes an invoice of every order that is complete
count=0
for order in orders/*.csv; do
    draft=$(mktemp)
    awk -F';' 'NF == 3 { print $1 " x " $2; sum += $3 } /^total/ { print "total " sum }' "$order" > "$draft"
    if ! grep -q '^total' "$draft"; then
        echo "$order: not complete" >&2
        continue
    fi
    cp "$draft" "invoices/$(basename "$order" .csv).txt"
    rm "$draft"
    count=$((count + 1))
done
echo "$count invoices"
