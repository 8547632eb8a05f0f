exec /usr/bin/python3 upload.py
