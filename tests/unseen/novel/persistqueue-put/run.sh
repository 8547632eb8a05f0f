exec /usr/bin/python3 jobs.py
