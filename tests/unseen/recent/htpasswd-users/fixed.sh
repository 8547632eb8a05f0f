while read -r name password; do
  htpasswd -n -b -s "$name" "$password"
done < members | grep . > users.new
sync users.new
mv users.new users
wc -l users
