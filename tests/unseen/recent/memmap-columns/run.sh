exec /usr/bin/python3 columns.py
