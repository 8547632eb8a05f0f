exec /usr/bin/python3 record.py
