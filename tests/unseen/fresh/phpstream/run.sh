exec php push.php
