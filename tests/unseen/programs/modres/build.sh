g++ -O2 -std=c++17 -o resolve resolve.cc
