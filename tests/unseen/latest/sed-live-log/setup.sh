seq 1 30000 | awk '{ print "service[" $1 "]: " ($1 % 9 ? "request done" : "debug: cache state " $1 * 7) }' > service.log
