exec python3 simulate.py
