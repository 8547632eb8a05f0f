exec php thumbs.php
