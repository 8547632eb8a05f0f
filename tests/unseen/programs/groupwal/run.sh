exec ./wal
