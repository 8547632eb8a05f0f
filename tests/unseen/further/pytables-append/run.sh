exec /usr/bin/python3 measure.py
