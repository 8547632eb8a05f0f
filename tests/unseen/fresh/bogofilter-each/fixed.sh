mkdir words
ls spam/* | bogofilter -d words -s -b || [ $? -le 2 ] || exit 3
bogoutil -w words .MSG_COUNT
