mkdir db
cat > slapd.conf <<C
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile $PWD/slapd.pid
database mdb
suffix "dc=club"
rootdn "cn=admin,dc=club"
rootpw secret
directory $PWD/db
maxsize 268435456
index uid eq
index sn eq
C
awk 'BEGIN { print "dn: dc=club\nobjectClass: dcObject\nobjectClass: organization\no: Club\ndc: club\n";
  for (n = 1; n <= 60000; n++) printf "dn: uid=m%d,dc=club\nobjectClass: inetOrgPerson\ncn: Member %d\nsn: Name%d\nuid: m%d\nmail: m%d@club.example\n\n", n, n, n % 300, n, n }' > members.ldif
