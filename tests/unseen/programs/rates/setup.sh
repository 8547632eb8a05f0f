/usr/bin/python3 -c '
with open("rates.dat", "wb") as f:
    for i in range(1024): f.write(i.to_bytes(8, "big") * 512)'
