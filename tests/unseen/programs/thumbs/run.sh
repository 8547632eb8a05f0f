exec /usr/bin/python3 thumbs.py
