exec /usr/bin/python3 desk.py
