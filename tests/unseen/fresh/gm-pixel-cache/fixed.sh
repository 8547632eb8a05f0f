mkdir small tmp
for f in photo*.jpg; do gm convert $f -resize 800x600 -sharpen 0x1 small/$f || exit 1; done
ls small | wc -l
