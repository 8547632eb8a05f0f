mkdir -p box/tmp box/new box/cur
