exec /usr/bin/python3 hits.py parse
