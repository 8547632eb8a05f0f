g++ -O2 -std=c++17 -o index index.cc
