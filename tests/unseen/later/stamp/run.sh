exec php -n stamp.php
