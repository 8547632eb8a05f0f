"""Measurements of a detector, appended by tables, and a query over an index."""
import tables


class Hit(tables.IsDescription):
    time = tables.Int64Col(pos=0)
    channel = tables.Int32Col(pos=1)
    energy = tables.Float32Col(pos=2)


with tables.open_file("hits.h5", "w") as f:
    table = f.create_table("/", "hits", Hit, expectedrows=2000000)
    for block in range(200):
        table.append([(block * 5000 + n, n * 7919 % 512, n % 977 / 7) for n in range(5000)])
    table.flush()
    table.cols.channel.create_index()

with tables.open_file("hits.h5") as f:
    total = sum(row["energy"] for channel in range(0, 512, 64) for row in f.root.hits.where(f"channel == {channel}"))
print(round(total))
