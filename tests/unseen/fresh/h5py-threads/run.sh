exec /usr/bin/python3 loader.py
