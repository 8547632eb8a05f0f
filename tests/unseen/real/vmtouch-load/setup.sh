mkdir lib; for i in 1 2 3 4; do head -c 120M /dev/urandom > lib/$i; done
