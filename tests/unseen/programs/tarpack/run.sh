exec /usr/bin/python3 pack.py
