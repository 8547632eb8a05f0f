exec /usr/bin/python3 scores.py
