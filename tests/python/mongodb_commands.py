"""Sends commands to a server of MongoDB through pymongo, and writes what pymongo's own listener counts.

mongodb_commands.py URI FILE
"""

import collections
import json
import sys
from concurrent.futures import ThreadPoolExecutor

import pymongo
from pymongo import monitoring


class Listener(monitoring.CommandListener):
    def __init__(self):
        self.commands = collections.Counter()
        self.failures = collections.Counter()
        self.micros = collections.Counter()

    def started(self, event):
        self.commands[event.command_name] += 1

    def succeeded(self, event):
        self.micros[event.command_name] += event.duration_micros

    def failed(self, event):
        self.failures[event.command_name] += 1
        self.micros[event.command_name] += event.duration_micros


listener = Listener()
client = pymongo.MongoClient(sys.argv[1], event_listeners=[listener])
people = client.shop.people
people.drop()
people.create_index("age")
rows = [{"_id": n, "name": f"secret{n}", "age": n % 50, "text": "x" * 200} for n in range(500)]
people.insert_many(rows)


def work(k):
    for n in range(20):
        people.find_one({"_id": n, "name": {"$ne": "secret-literal"}})
        people.update_one({"_id": n + k}, {"$set": {"age": k}})
        list(people.find({"age": {"$gt": 10}}).batch_size(100))


# Several connections at a time.
with ThreadPoolExecutor(4) as pool:
    list(pool.map(work, range(4)))
grouped = {"$group": {"_id": "$age", "n": {"$sum": 1}}}
list(people.aggregate([{"$match": {"age": {"$in": [1, 2, 3]}}}, grouped]))
people.delete_many({"age": {"$lt": 5}})
write_errors = 0
for _ in range(3):
    try:
        people.insert_one({"_id": 499})
    except pymongo.errors.DuplicateKeyError:
        write_errors += 1
for _ in range(2):
    try:
        client.shop.command("noSuchCommand", 1)
    except pymongo.errors.OperationFailure:
        pass
client.close()
counted = {
    "commands": listener.commands,
    "failures": listener.failures,
    "micros": listener.micros,
    "write_errors": write_errors,
}
with open(sys.argv[2], "w", encoding="utf-8") as out:
    json.dump(counted, out)
