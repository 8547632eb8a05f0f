exec /usr/bin/python3 log.py 100
