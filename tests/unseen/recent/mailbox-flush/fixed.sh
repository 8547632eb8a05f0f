exec /usr/bin/python3 expire.py once
