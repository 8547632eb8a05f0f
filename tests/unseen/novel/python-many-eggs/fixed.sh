mkdir site
for d in eggs/*/*; do ln -s ../$d site/; done
PYTHONPATH=site /usr/bin/python3 main.py
