exec /usr/bin/python3 exons.py
