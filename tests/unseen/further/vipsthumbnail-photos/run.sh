vipsthumbnail --size 320 -o "$PWD/thumbs/%s.jpg" photos/*.jpg || exit 1
ls thumbs | wc -l
