mkdir src; for i in $(seq 1 25); do head -c 8M /dev/urandom > src/$i; done
export BORG_BASE_DIR=$PWD/base; borg init -e none repo
