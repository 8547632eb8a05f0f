php -r '$f = fopen("prices.dat", "wb"); for ($n = 0; $n < 900000; $n++) fwrite($f, pack("VV", $n, $n * 7 % 9999) . str_repeat("-", 24));'
