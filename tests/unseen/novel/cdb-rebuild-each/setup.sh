awk 'BEGIN { for (n = 0; n < 9000; n++) printf "+%d,%d:user%05d->mailbox%05d\n", 9, 12, n, n; print "" }' > aliases
cdb -c aliases.cdb < aliases
