exec /usr/bin/python3 server.py
