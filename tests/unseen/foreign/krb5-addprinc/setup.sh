cat > krb5.conf <<C
[libdefaults]
 default_realm = SCHOOL.TEST
[realms]
 SCHOOL.TEST = {
  kdc = 127.0.0.1
 }
C
cat > kdc.conf <<C
[realms]
 SCHOOL.TEST = {
  database_name = $PWD/principal
  key_stash_file = $PWD/stash
  acl_file = $PWD/acl
 }
C
KRB5_CONFIG=$PWD/krb5.conf KRB5_KDC_PROFILE=$PWD/kdc.conf kdb5_util create -s -P master -r SCHOOL.TEST
