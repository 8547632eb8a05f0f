exec /usr/bin/python3 cache.py
