exec python3 epoch.py samples.bin
