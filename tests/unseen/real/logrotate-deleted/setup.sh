sed "s,HERE,$PWD," lr.conf.in > lr.conf; chmod 644 lr.conf; chown root:root lr.conf; chmod 755 .
