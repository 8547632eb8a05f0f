exec /usr/bin/python3 stat.py
