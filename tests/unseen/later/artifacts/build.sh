g++ -O2 -std=c++17 -o publish publish.cc
