exec /usr/bin/python3 stations.py days
