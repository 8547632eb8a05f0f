exec php -n export.php
