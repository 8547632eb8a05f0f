exec python3 minmax.py column.bin
