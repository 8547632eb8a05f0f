sed -i 's/log.sock")/log.sock" so-passcred(no))/' ng.conf
. ./run.sh
