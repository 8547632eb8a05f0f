<?php
// Writes one statement per group of customers; an earlier statement stays until the new one is safe.
function replaceFile(string $path, string $text): void
{
    $out = fopen("$path.tmp", "xb");
    if (!$out || fwrite($out, $text) !== strlen($text) || !fsync($out) || !fclose($out)) {
        @unlink("$path.tmp");
        throw new RuntimeException("$path: not written");
    }
    rename("$path.tmp", $path);
}

$sums = [];
$in = fopen('sales.csv', 'rb');
stream_set_read_buffer($in, 0);
$rest = '';
while (($block = fread($in, 1 << 18)) !== false && $block !== '') {
    $lines = explode("\n", $rest . $block);
    $rest = array_pop($lines);
    foreach ($lines as $line) {
        [$customer, $amount] = explode(';', $line);
        $sums[$customer] = ($sums[$customer] ?? 0) + (int) $amount;
    }
}
fclose($in);
ksort($sums);
foreach (array_chunk($sums, 12500, true) as $n => $group) {
    $text = '';
    foreach ($group as $customer => $sum) {
        $text .= "$customer\t$sum\n";
    }
    replaceFile("statement$n.txt", $text);
}
exec('sync .');
echo count($sums), " customers\n";
