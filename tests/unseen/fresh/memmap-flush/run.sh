exec /usr/bin/python3 count.py
