exec /usr/bin/python3 mean.py
