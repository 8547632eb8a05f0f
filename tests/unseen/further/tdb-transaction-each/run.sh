exec /usr/bin/python3 leases.py 1
