from tinydb import TinyDB

db = TinyDB("sensors.json")
for n in range(700):
    db.insert({"sensor": n % 12, "value": n * 7919 % 1000 / 10, "unit": "degree", "note": "measured in the cellar"})
print(len(db))
