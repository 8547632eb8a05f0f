exec php -n report.php
