ddpt if=volume.img iflag=direct of=copy.img bs=512 bpt=4096 && cmp volume.img copy.img
