mkdir -p thin volume
