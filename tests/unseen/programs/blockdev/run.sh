exec ./mkimage
