mkdir www tmp
head -c 300k /dev/urandom | base64 > www/prices.json
here=$PWD
cat > nginx.conf <<C
worker_processes 1;
daemon off;
user root;
pid $here/nginx.pid;
error_log $here/error.log;
events { worker_connections 64; }
http {
    access_log off;
    sendfile on;
    open_file_cache max=1000 inactive=10m;
    open_file_cache_valid 10m;
    client_body_temp_path $here/tmp;
    proxy_temp_path $here/tmp;
    fastcgi_temp_path $here/tmp;
    uwsgi_temp_path $here/tmp;
    scgi_temp_path $here/tmp;
    server { listen 127.0.0.1:18721; root $here/www; }
}
C
