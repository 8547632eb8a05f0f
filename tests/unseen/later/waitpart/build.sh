g++ -O2 -o merge merge.cc
