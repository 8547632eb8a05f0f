export TMPDIR=$PWD/tmp
exec sh invoices.sh
