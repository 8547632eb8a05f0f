ddrescue -q -c 2048 card.img copy.img copy.map && ls -l copy.img
