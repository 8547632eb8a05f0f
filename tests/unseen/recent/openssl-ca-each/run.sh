# certificates for the new sensors
for r in requests/*.csr; do
  openssl ca -config ca.cnf -batch -notext -in "$r" -out /dev/null 2> last.log || exit 1
done
wc -l index.txt
