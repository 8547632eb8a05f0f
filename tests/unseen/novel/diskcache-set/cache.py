# answers of a service, kept for a day
import diskcache

cache = diskcache.Cache("answers")
for n in range(9000):
    cache.set("query %d" % n, {"answer": n * 17, "score": n / 7}, expire=86400)
print(sum(cache.get("query %d" % (n * 13 % 9000)) is not None for n in range(9000)))
cache.close()
