/usr/bin/gfortran -O2 -o stations stations.f90
