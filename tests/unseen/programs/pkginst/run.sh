exec /usr/bin/python3 install.py
