<?php
// Prices of articles: records of 32 bytes in the order of their number.
$prices = fopen('prices.dat', 'rb');
$sum = 0;
for ($n = 0; $n < 400000; $n++) {
    $article = ($n * 104729) % 900000;
    fseek($prices, $article * 32);
    $record = unpack('Vnumber/Vcents', fread($prices, 32));
    if ($record['number'] !== $article) exit(1);
    $sum += $record['cents'];
}
echo "$sum\n";
