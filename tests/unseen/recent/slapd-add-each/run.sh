/usr/sbin/slapd -d 0 -f slapd.conf -h ldap://127.0.0.1:18974 & P=$!
until [ -s slapd.pid ]; do sleep 0.1; done
ldapadd -x -H ldap://127.0.0.1:18974 -D cn=admin,dc=club -w secret -f members.ldif > added; rc=$?
kill $P
wait $P
grep -c adding added
exit $rc
