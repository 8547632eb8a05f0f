mkdir big; for i in 1 2 3 4; do (head -c 50M /dev/urandom; seq 1 10000000 | head -c 50M) > big/$i; done
