exec /usr/bin/python3 stream.py
