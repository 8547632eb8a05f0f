"""Imports a price list into the shop database."""
import csv, sqlite3

db = sqlite3.connect("shop.db", isolation_level=None)
db.execute("create table if not exists prices (sku text primary key, name text, cents integer)")
with open("prices.csv", newline="") as f:
    for sku, name, cents in csv.reader(f):
        db.execute("insert or replace into prices values (?, ?, ?)", (sku, name, int(cents)))
db.close()
