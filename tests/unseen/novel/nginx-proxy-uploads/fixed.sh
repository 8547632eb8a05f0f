sed -i 's/^http {/http { client_body_buffer_size 256k;/' nginx.conf
. ./run.sh
