exec /usr/bin/python3 stations.py each
