exec java Buffered
