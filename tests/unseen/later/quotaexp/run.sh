# 4 MB for each file
ulimit -f 8192
exec /usr/bin/python3 export.py
