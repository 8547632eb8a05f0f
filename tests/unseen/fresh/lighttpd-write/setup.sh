mkdir www
head -c 120000000 /dev/urandom > www/release.iso
cat > lighttpd.conf <<C
server.document-root = "$PWD/www"
server.port = 18831
server.bind = "127.0.0.1"
server.errorlog = "$PWD/error.log"
# copied from the notes of a share that could not do sendfile
server.network-backend = "write"
C
