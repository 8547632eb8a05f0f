import logging
import time

logging.basicConfig(filename="service.log", format="service[%(process)d]: %(message)s", level=logging.INFO)
for n in range(3000):
    logging.info("request %d done, %d items", n, n % 17)
    time.sleep(0.001)
logging.info("end of the shift: %d requests", n + 1)
