git -c core.fsync=loose-object -c core.fsyncMethod=fsync add tree
