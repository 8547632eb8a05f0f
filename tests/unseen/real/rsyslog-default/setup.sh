sed "s,HERE,$PWD," rs.conf.in > rs.conf
i=0; while [ $i -lt 50000 ]; do echo "request $i from 10.0.0.7 answered with status 200 in 17 ms"; i=$((i+1)); done > msgs
