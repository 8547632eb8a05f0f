exec /usr/bin/python3 movie.py once
