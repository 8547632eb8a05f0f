import sys
import pandas

if sys.argv[1] == "each":
    for name in pandas.read_csv("sensors.csv", nrows=0).columns[1:]:
        print(name, pandas.read_csv("sensors.csv", usecols=[name])[name].mean())
else:
    print(pandas.read_csv("sensors.csv").iloc[:, 1:].mean())
