exec par2 create -q -q -t1 -m200 -s96000 -r12 archive.par2 scan1.tif scan2.tif scan3.tif scan4.tif
