exec /usr/bin/python3 worker.py
