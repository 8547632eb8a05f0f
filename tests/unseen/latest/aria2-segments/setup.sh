mkdir www tmp
head -c 400M /dev/urandom > www/release.img
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
    client_body_temp_path $here/tmp;
    proxy_temp_path $here/tmp;
    fastcgi_temp_path $here/tmp;
    uwsgi_temp_path $here/tmp;
    scgi_temp_path $here/tmp;
    server { listen 127.0.0.1:18702; root $here/www; }
}
C
