g++ -O2 -std=c++17 -o sort sort.cc
