exec /usr/bin/python3 hub.py
