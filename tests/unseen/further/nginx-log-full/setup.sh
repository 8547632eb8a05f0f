echo hello > index.html
cat > nginx.conf <<C
daemon off;
master_process off;
user root;
pid nginx.pid;
error_log error.log crit;
events { }
http {
  access_log access.log;
  client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
  server { listen 127.0.0.1:18975; root .; }
}
C
