export NOTMUCH_CONFIG=$PWD/config
# what a mail filter decided, message by message
while read n; do
    notmuch tag +invoice -inbox -- id:m$n@example.com || exit 1
done < invoices
[ $(notmuch count tag:invoice) = 167 ]
