mkdir spool
i=0
while [ $i -lt 3000 ]; do printf 'Subject: ticket %d\n\nbody of ticket %d\n' $i $i > spool/t$i; i=$((i + 1)); done
