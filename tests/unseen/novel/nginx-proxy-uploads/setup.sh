head -c 90000 /dev/urandom > body
cat > nginx.conf <<C
daemon off;
user root;
pid nginx.pid;
error_log error.log warn;
worker_processes 1;
events { }
http {
  access_log off;
  client_body_temp_path body_temp;
  proxy_temp_path proxy_temp;
  fastcgi_temp_path fastcgi_temp;
  uwsgi_temp_path uwsgi_temp;
  scgi_temp_path scgi_temp;
  server { listen 127.0.0.1:18971; location / { proxy_pass http://127.0.0.1:18972; } }
  server { listen 127.0.0.1:18972; client_body_buffer_size 256k; location / { return 204; } }
}
C
