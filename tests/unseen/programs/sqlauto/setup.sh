/usr/bin/python3 -c '
with open("prices.csv", "w") as f:
    for i in range(150): f.write("sku%05d,article number %d,%d\n" % (i * 7919 % 100000, i, i * 37 % 9999))'
