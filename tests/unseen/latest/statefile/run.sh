exec python3 poller.py
