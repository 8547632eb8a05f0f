/usr/bin/python3 -c '
with open("measure.csv", "w") as f:
    for i in range(300000): f.write("%d,station%03d,%.2f\n" % (i, i * 7919 % 500, i * 31 % 9999 / 7))'
