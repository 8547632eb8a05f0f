g++ -O2 -o lsm lsm.cc
