mkdir photos thumbs
for n in $(seq 14); do vips gaussnoise photos/p$n.v 2400 1800 --mean 128 --sigma $((n * 5)) && vips cast photos/p$n.v photos/c$n.v uchar && vips copy photos/c$n.v photos/p$n.jpg; done
rm photos/*.v
