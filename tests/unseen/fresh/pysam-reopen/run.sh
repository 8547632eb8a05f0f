exec /usr/bin/python3 gc.py
