mkdir www; head -c 300M /dev/urandom > www/big; cat www/big > /dev/null
