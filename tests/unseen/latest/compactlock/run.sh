exec python3 index.py
