gcc -O2 -o scan scan.c -llmdb
