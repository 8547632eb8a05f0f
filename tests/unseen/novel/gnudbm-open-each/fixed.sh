exec /usr/bin/python3 seen.py once
