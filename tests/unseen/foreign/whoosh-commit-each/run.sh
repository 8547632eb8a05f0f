exec /usr/bin/python3 notes.py
