ogr2ogr -f GPKG -oo X_POSSIBLE_NAMES=lon -oo Y_POSSIBLE_NAMES=lat trees.gpkg trees.csv && ogrinfo -q -so trees.gpkg trees | head -3
