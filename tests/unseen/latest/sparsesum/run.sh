exec python3 sparsesum.py guest.img
