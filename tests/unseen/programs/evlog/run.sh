exec /usr/bin/python3 game.py
