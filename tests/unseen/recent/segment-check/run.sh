exec /usr/bin/python3 backup.py
