g++ -O2 -o dump dump.cc -laio
