exec ./pcaprec capture.bin
