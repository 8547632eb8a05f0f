<?php
// Serves pictures: a line with a name comes in, four bytes of length and the picture go out.
$server = stream_socket_server('tcp://127.0.0.1:18976');
$client = stream_socket_accept($server);
while (($name = fgets($client)) !== false) {
    $data = file_get_contents('pictures/' . trim($name));
    fwrite($client, pack('N', strlen($data)) . $data);
}
