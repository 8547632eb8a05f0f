exec /usr/bin/python3 watch.py
