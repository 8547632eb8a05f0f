i=0; while [ $i -lt 500 ]; do printf 'From a@b Mon Nov 23 07:00:00 2026\nFrom: a@b\nTo: c@d\nSubject: mail %s\nMessage-Id: <%s@b>\n\n' $i $i; seq 1 300; echo; i=$((i+1)); done > mbox
mkdir -p md/new md/tmp md/cur
cat > rc <<R
MAILDIR=$PWD
DEFAULT=$PWD/md/
LOCKFILE=
LOGFILE=$PWD/pm.log
VERBOSE=no
R
chmod 644 rc
