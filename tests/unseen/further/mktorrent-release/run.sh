mktorrent -t 2 -l 18 -a udp://tracker.example.org:80 -o release.torrent release > /dev/null
