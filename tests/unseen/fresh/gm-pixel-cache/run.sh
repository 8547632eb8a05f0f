mkdir small tmp
export MAGICK_TMPDIR=$PWD/tmp MAGICK_LIMIT_MEMORY=4MB MAGICK_LIMIT_MAP=4MB
for f in photo*.jpg; do gm convert $f -resize 800x600 -sharpen 0x1 small/$f || exit 1; done
ls small | wc -l
