<?php
// Worker of a queue; what it prints is its log.
for ($job = 1; $job <= 400; $job++) {
    $result = hash('sha256', str_repeat("job $job ", 2000));
    fwrite(STDOUT, sprintf("%s job %d done: %s\n%s", date('Y-m-d'), $job, $result, str_repeat("  step finished\n", 20)));
    usleep(2000);
}
