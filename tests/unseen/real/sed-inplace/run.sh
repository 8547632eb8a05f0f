for i in 1 2 3; do sed -i "s/^7$i some/7$i other/" big.txt || exit 1; done
