exec /usr/bin/python3 mk.py
