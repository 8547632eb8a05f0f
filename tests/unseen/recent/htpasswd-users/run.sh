# the accounts of the club, one call for each member
while read -r name password; do
  htpasswd -b -s users "$name" "$password" 2> /dev/null || exit 1
done < members
wc -l users
