git -c core.fsync=loose-object -c core.fsyncMethod=batch add tree
