export HGRCPATH=/dev/null
hg clone -q --pull main copy || exit 1
hg -R copy verify -q && hg -R copy status | wc -l
