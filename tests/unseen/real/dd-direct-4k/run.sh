timeout 60 dd if=in of=/dev/null bs=4k count=60000 iflag=direct
