export RESTIC_PASSWORD=x TMPDIR=$PWD/tmp
restic -q -r repo --cache-dir cache backup src && restic -q -r repo --cache-dir cache snapshots
