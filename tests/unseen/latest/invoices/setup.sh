mkdir -p orders invoices tmp
i=0
while [ $i -lt 240 ]; do
    { seq $i $((i + 40)) | sed 's/.*/item&;1;9.90/'; [ $((i % 3)) = 1 ] || echo total; } > orders/o$i.csv
    i=$((i + 1))
done
