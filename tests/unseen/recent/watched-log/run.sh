exec /usr/bin/python3 serve.py
