/usr/bin/python3 catalog.py && wc -l catalog
