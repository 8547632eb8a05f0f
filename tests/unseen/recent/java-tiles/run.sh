exec java Tiles
