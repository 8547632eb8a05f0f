python3 - <<'P'
import logging, logging.handlers
h = logging.handlers.RotatingFileHandler("app.log", maxBytes=10_000_000, backupCount=3)
h.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
log = logging.getLogger("app"); log.addHandler(h); log.setLevel(logging.INFO)
for i in range(150000):
    log.info("request %d answered with status 200", i)
P
