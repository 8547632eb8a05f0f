export USER=nobody HOME=$PWD/home
setpriv --reuid nobody --regid nogroup --clear-groups doveadm -c dovecot.conf import mbox:$PWD/mail:INBOX=$PWD/in/inbox.mbox "" all || exit 1
du -s store
