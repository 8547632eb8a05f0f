mkdir logs
sed "s,HERE,$PWD," rs.conf.in > rs.conf
