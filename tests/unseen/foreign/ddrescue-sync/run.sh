ddrescue -q -y -c 16 card.img copy.img copy.map && ls -l copy.img
