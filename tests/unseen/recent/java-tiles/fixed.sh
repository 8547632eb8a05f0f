exec java Tiles at
