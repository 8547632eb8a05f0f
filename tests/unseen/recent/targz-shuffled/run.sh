exec /usr/bin/python3 epoch.py
