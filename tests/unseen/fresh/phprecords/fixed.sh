sed -i "s/^.sum = 0;/stream_set_read_buffer(\$prices, 0);\n&/" lookup.php
exec php lookup.php
