<?php
// Sends the events of the day to a subscriber; the connection does not block, so that one that hangs holds up nobody.
$end = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
$pid = pcntl_fork();
if ($pid === 0) {
    fclose($end[0]);
    $got = fopen('received.log', 'w');
    while (($part = fread($end[1], 65536)) !== false && $part !== '') {
        fwrite($got, $part);
        usleep(1500);
    }
    exit(0);
}
fclose($end[1]);
stream_set_blocking($end[0], false);
stream_set_write_buffer($end[0], 0);
$sent = 0;
foreach (glob('events/*') as $file) {
    $text = file_get_contents($file);
    fwrite($end[0], $text);
    $sent += strlen($text);
    usleep(2000);
}
fclose($end[0]);
pcntl_waitpid($pid, $status);
printf("sent %d, received %d\n", $sent, filesize('received.log'));
