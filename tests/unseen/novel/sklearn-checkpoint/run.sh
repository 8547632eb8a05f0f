exec /usr/bin/python3 train.py
