exec /usr/bin/python3 load.py
