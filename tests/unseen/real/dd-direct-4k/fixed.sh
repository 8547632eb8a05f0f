timeout 60 dd if=in of=/dev/null bs=1M count=234 iflag=direct
