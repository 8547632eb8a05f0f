mkdir tree
for d in $(seq 55); do mkdir tree/d$d; for n in $(seq 60); do head -c $((n * 200)) /dev/urandom > tree/d$d/f$n; done; done
cat > aide.conf <<C
database_in=file:$PWD/aide.db
database_out=file:$PWD/aide.db.new
gzip_dbout=no
report_url=stdout
$PWD/tree p+i+n+u+g+s+m+sha256
C
