/usr/bin/python3 -c '
import random
r = random.Random(9)
with open("book.txt", "wb") as f:
    b = bytes(r.choices(b"eeeeetttaaooiinnsshhrdlu  ,.\n", k=1 << 20))
    for i in range(150): f.write(b)'
