# a full disk (here: a limit of the file's size); logging prints and goes on
ulimit -f 100
python3 - 2>/dev/null <<'P'
import logging
logging.basicConfig(filename="app.log", level=logging.INFO)
import time
for i in range(6000):
    logging.info("order %d accepted, amount 17.20, customer 4711", i)
    time.sleep(0.0003)
P
