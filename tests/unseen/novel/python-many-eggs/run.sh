PYTHONPATH=$(ls -d eggs/* | paste -sd:) /usr/bin/python3 main.py
