<?php
// Makes small pictures (here: samples of the pixels) of what was uploaded and puts them into one file.
$sheet = fopen('sheet.bin', 'w');
foreach (glob('uploads/*.raw') as $file) {
    $tmp = tempnam('tmp', 'thumb');
    $in = fopen($file, 'r');
    $out = fopen($tmp, 'w');
    while (($row = fread($in, 8192)) != '') {
        fwrite($out, substr($row, 0, 1024));
    }
    fclose($in);
    fclose($out);
    fwrite($sheet, file_get_contents($tmp));
    usleep(800);
}
fclose($sheet);
echo count(glob('tmp/*')), " files are left in tmp\n";
