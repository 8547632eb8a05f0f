export NOTMUCH_CONFIG=$PWD/config
sed 's/.*/+invoice -inbox -- id:m&@example.com/' invoices | notmuch tag --batch || exit 1
[ $(notmuch count tag:invoice) = 167 ]
