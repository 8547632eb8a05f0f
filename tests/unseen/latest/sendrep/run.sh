exec python3 sendrep.py
