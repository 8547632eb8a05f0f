here=$PWD
d=www/shop/2024/spring/catalog/garden/tools/hand/steel/pictures/small
mkdir -p $d
i=0
while [ $i -lt 200 ]; do head -c 1500 /dev/urandom > $d/p$i.gif; i=$((i + 1)); done
M=/usr/lib/apache2/modules
cat > httpd.conf <<C
ServerRoot $here
ServerName localhost
PidFile $here/httpd.pid
ErrorLog $here/error.log
DefaultRuntimeDir $here
Listen 127.0.0.1:18712
LoadModule mpm_event_module $M/mod_mpm_event.so
LoadModule authz_core_module $M/mod_authz_core.so
LoadModule dir_module $M/mod_dir.so
StartServers 1
ServerLimit 1
ThreadsPerChild 8
MaxRequestWorkers 8
MaxKeepAliveRequests 0
KeepAlive On
User www-data
Group www-data
DocumentRoot $here/www
<Directory />
    Options FollowSymLinks
    AllowOverride None
    Require all granted
</Directory>
C
chmod -R a+rX .
