exec /usr/bin/python3 unpacked.py
