#!/usr/bin/env python3
"""Reads a session of fathom with the package in python/, and draws two plots.

    pip install './python[plots]'
    python3 examples/session.py run.fathom -o run.png

docs/schema.md lists every table and column. The program fathom is not needed. Cells begin with
`# %%`, as notebooks and editors know them.
"""

# %% The session: session.json says what was recorded, the folders hold the rows.
import argparse
from pathlib import Path

import fathom
import pandas

arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
arguments.add_argument("session", type=Path)
arguments.add_argument("-o", "--output", type=Path, default=Path("session.png"))
arguments.add_argument("--no-plot", action="store_true", help="print the tables only")
options = arguments.parse_args()

session = fathom.open(options.session)
started_at_ns = session.started_at_ns
totals = session.meta["totals"]
print(f"{totals['seen']} calls seen, {totals['stored']} stored, {totals['lost']} lost")

# %% What took the time? A data frame of pandas from SQL.
by_call = session.sql(
    """
    SELECT syscall, count(*) AS calls, sum(bytes)::BIGINT AS bytes,
           sum(dur_ns) / 1e6 AS total_ms,
           quantile_cont(dur_ns, 0.5) / 1e3 AS median_us,
           quantile_cont(dur_ns, 0.99) / 1e3 AS p99_us
    FROM syscalls GROUP BY syscall ORDER BY total_ms DESC, syscall LIMIT 10
    """
).df()
print(by_call.to_string(index=False))

# %% Which files?
by_file = session.sql(
    """
    SELECT path, count(*) AS calls, sum(bytes)::BIGINT AS bytes
    FROM syscalls WHERE path IS NOT NULL AND class = 'data'
    GROUP BY path ORDER BY bytes DESC NULLS LAST, path LIMIT 10
    """
).df()
print(by_file.to_string(index=False))

# %% Where in the file, and how fast: offsets and latencies over time.
moves = session.sql(
    """
    SELECT (ts_ns - ?) / 1e9 AS seconds, file_offset / 1048576.0 AS mib,
           dur_ns / 1e3 AS us, syscall
    FROM syscalls WHERE class = 'data' AND file_offset IS NOT NULL AND bytes > 0
    ORDER BY ts_ns
    """,
    [started_at_ns],
).df()
print(f"{len(moves)} reads and writes with an offset")

# %% Mapped files are read and written without calls: their page faults are in a table of their own.
faults = session.sql(
    """
    SELECT (ts_ns - ?) / 1e9 AS seconds, file_offset / 1048576.0 AS mib,
           dur_ns / 1e3 AS us, 'page fault' AS syscall
    FROM faults ORDER BY ts_ns
    """,
    [started_at_ns],
).df()
print(f"{len(faults)} page faults on mapped files")
if len(faults):
    moves = pandas.concat([moves, faults], ignore_index=True)

# %% The plots.
if not options.no_plot:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (where, fast) = pyplot.subplots(2, 1, sharex=True, figsize=(9, 6))
    for syscall, group in moves.groupby("syscall"):
        where.plot(group.seconds, group.mib, ".", markersize=2, label=syscall)
        fast.plot(group.seconds, group.us, ".", markersize=2, label=syscall)
    where.set_ylabel("offset, MiB")
    fast.set_ylabel("latency, us")
    fast.set_xlabel("seconds since the recording began")
    if len(moves):
        fast.set_yscale("log")
        where.legend(loc="upper left", markerscale=4)
    figure.tight_layout()
    figure.savefig(options.output)
    print(f"plot in {options.output}")
