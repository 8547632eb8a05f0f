exec /usr/bin/python3 score.py
