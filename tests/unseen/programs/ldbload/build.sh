g++ -O2 -o load load.cc -lleveldb
