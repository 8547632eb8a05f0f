g++ -O2 -pthread -o ingest ingest.cc
