exec /usr/bin/python3 index.py
