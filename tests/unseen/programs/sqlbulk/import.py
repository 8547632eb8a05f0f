"""Imports measurements into a database, all in one transaction."""
import csv, sqlite3

db = sqlite3.connect("measure.db")
with db, open("measure.csv", newline="") as f:
    db.execute("create table m (id integer primary key, station text, value real)")
    db.executemany("insert into m values (?, ?, ?)", ((int(i), s, float(v)) for i, s, v in csv.reader(f)))
    db.execute("create index m_station on m (station)")
print(db.execute("select count(*), round(avg(value), 3) from m").fetchone())
db.close()
