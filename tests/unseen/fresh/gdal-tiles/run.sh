gdal_translate -q -of GTiff -co TILED=YES -co COMPRESS=DEFLATE -co ZLEVEL=1 elevation.tif tiles.tif && ls -l tiles.tif
