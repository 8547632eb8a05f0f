exec /usr/bin/python3 lookups.py ahead
