cp in out
