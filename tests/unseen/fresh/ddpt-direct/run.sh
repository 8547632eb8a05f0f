ddpt if=volume.img iflag=direct of=copy.img bs=512 bpt=16 && cmp volume.img copy.img
