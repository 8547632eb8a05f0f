exec php lookup.php
