/usr/bin/python3 -c '
with open("counters.bin", "wb") as f:
    for i in range(48): f.write(bytes(1 << 20))'
sync counters.bin
