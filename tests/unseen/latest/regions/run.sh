exec lua5.4 regions.lua sales.csv regions.txt
