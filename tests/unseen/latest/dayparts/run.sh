exec python3 dayparts.py
