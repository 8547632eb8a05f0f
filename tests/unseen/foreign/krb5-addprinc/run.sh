export KRB5_CONFIG=$PWD/krb5.conf KRB5_KDC_PROFILE=$PWD/kdc.conf
seq 1 2500 | sed 's/.*/addprinc -randkey host\/pc&.school.test/' | kadmin.local > added.log 2>&1
grep -c created added.log
