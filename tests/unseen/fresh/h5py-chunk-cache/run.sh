exec /usr/bin/python3 filter.py
