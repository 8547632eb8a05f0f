g++ -O2 -o twopass twopass.cc
