exec /usr/bin/python3 sessions.py each
