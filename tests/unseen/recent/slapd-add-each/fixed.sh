/usr/sbin/slapadd -q -f slapd.conf -l members.ldif || exit 1
/usr/sbin/slapcat -f slapd.conf | grep -c ^dn:
