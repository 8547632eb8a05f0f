exec /usr/bin/python3 means.py each
