exec /usr/bin/python3 import.py
