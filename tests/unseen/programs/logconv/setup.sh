mkdir -p logs
/usr/bin/python3 -c '
for i in range(220):
    with open("logs/m%03d.log" % i, "w") as f:
        f.write("host m%03d\n" % i)
        for j in range(60): f.write("%d cpu %d mem %d\n" % (j, j * i % 100, j * 7 % 64))'
