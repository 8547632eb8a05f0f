sort -S 300M --parallel=2 -u -o known known && wc -l known
