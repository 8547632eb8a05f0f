openssl ca -config ca.cnf -batch -notext -out /dev/null -infiles requests/*.csr 2> last.log || exit 1
wc -l index.txt
