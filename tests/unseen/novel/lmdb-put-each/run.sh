exec /usr/bin/python3 dataset.py 1
