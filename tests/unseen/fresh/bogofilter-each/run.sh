mkdir words
for m in spam/*; do
    bogofilter -d words -s < $m || [ $? -le 2 ] || exit 3
done
bogoutil -w words .MSG_COUNT
