exec /usr/bin/python3 collect.py once
