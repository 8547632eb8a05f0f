exec ./lsm
