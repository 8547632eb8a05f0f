mkdir www logs
for n in $(seq 50); do head -c 3000 /dev/urandom > www/part$n.bin; done
cat > lighttpd.conf <<C
server.modules = ( "mod_accesslog" )
server.document-root = "$PWD/www"
server.port = 18834
server.bind = "127.0.0.1"
server.errorlog = "$PWD/error.log"
accesslog.filename = "$PWD/logs/access.log"
C
awk 'BEGIN { for (n = 0; n < 8000; n++) printf "url = \"http://127.0.0.1:18834/part%d.bin\"\noutput = \"/dev/null\"\n", n % 50 + 1 }' > urls
