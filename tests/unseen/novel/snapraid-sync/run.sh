snapraid -c snapraid.conf --test-skip-device sync > sync.log 2>&1 || { tail -n 5 sync.log; exit 1; }
snapraid -c snapraid.conf --test-skip-device status > status.log 2>&1
tail -n 3 status.log
