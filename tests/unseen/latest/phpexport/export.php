<?php
// Exports the order lines for the accountants.
$out = fopen('orders.csv', 'wb');
if (!$out) {
    exit(1);
}
$total = 0;
for ($n = 1; $n <= 700000; $n++) {
    $price = ($n * 7919) % 9973;
    if (fputcsv($out, [$n, "article " . $n % 4001, $price, 'EUR']) === false) {
        exit(1);
    }
    $total += $price;
}
if (!fsync($out) || !fclose($out)) {
    exit(1);
}
echo "$total\n";
